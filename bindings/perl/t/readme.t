# The snippets of the page for newcomers run.
#
# SPDX-License-Identifier: Apache-2.0
use v5.36;
use FindBin;
use Test::More;

open my $page, '<', "$FindBin::Bin/../README.md" or die "README.md: $!";
my $text = do { local $/; readline $page };
my $have_pdl = eval { require PDL };

my $number = 0;
while ($text =~ /```perl\n(.*?)```/gs) {
    my $snippet = $1;
    ++$number;
  SKIP: {
        skip 'PDL is not installed', 1 if !$have_pdl && $snippet =~ /use PDL/;
        ok(eval "package Snippet$number; $snippet; 1", "snippet $number") or diag($@);
    }
}
cmp_ok($number, '>=', 3, 'the page has snippets');
done_testing();
