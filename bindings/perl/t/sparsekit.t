# What the conformance cases cannot test.
#
# SPDX-License-Identifier: Apache-2.0
use v5.36;
use Test::More;
use Scalar::Util qw(refaddr weaken);
use SparseKit;

my $have_pdl = eval { require PDL::Lite };

sub ones ($n) { pack 'f*', (1) x $n }
sub floats ($packed) { [unpack 'f*', $packed] }

# A view over a scalar of the caller's.
sub view_of ($packed, @layout) { SparseKit::View->new([f32 => $packed], @layout) }

# The code must die with this status; gives the exception.
sub refused ($status, $name, $code) {
    my $lived = eval { $code->(); 1 };
    my $error = $@;
    my $right = !$lived && ref $error && $error->isa('SparseKit::Error')
        && $error->status_name eq "SPK_$status";
    ok($right, $name) or diag($lived ? 'it lived' : "it died with: $error");
    return $error;
}

# --- arrays ---------------------------------------------------------------------------------------

subtest 'arrays of every dtype' => sub {
    my %values = (
        f32 => [0.5, -2, 2**100], f64 => [0.1, -1e300, 1 / 3], u8 => [0, 1, 255],
        i64 => [-1, 0, 4611686018427387905], f16 => [0, 0x3c00, 0xffff], bf16 => [0x3f80, 1, 2],
    );
    for my $dtype (sort keys %values) {
        my $array = SparseKit::array($dtype, $values{$dtype});
        is_deeply([$array->list], $values{$dtype}, "$dtype from a list");
        is($array->dtype, $dtype, 'dtype');
        is($array->numel, 3, 'numel');
        my $bytes = $array->bytes;
        is_deeply([SparseKit::array($dtype, \$bytes)->list], $values{$dtype}, 'from bytes');
        is_deeply([SparseKit::array($dtype, 3)->list], [0, 0, 0], 'zeros');
    }
    refused(INVALID_ARGUMENT => 'dtype', sub { SparseKit::array('f31', 3) });
    refused(INVALID_ARGUMENT => 'content', sub { SparseKit::array('f32', 'abc') });
    refused(INVALID_ARGUMENT => 'no content', sub { SparseKit::array('f32', undef) });
};

subtest 'packed strings are written in place' => sub {
    my $packed = ones(8);
    vec($packed, 0, 8) = 0;    # a string of its own, shared with no temporary
    my $before = unpack 'J', pack 'P', $packed;
    is(SparseKit::address([f32 => \$packed]), $before, 'the address is that of the string');
    view_of(\$packed, 8)->prune_unstructured(0.5);
    is_deeply(floats($packed), [1, 1, 1, 1, 0, 0, 0, 0], 'the scalar itself has changed');
    is(unpack('J', pack 'P', $packed), $before, 'and is where it was');
};

subtest 'copies of a string keep their values' => sub {
    my $packed = ones(1000);
    my $copy   = $packed;
    my $view   = view_of(\$packed, 1000);
    is(SparseKit::address([f32 => \$copy]), SparseKit::address([f32 => \$packed]),
        'reading leaves them shared');
    $view->prune_unstructured(1);
    is($copy, ones(1000), 'the copy');
    is($packed, "\0" x 4000, 'the original');
    isnt(SparseKit::address([f32 => \$copy]), SparseKit::address([f32 => \$packed]), 'two strings');
};

subtest 'strings that begin inside of their memory' => sub {
    my $packed = 'x' . ones(100);
    substr $packed, 0, 1, '';
    view_of(\$packed, 100)->prune_unstructured(0.5);
    is_deeply(floats($packed), [(1) x 50, (0) x 50], 'written');
    my $read = 'xyz' . ones(4);
    substr $read, 0, 3, '';
    my $block = SparseKit::Block->new(view_of(\$read, 4), 4);
    is(($block->norms(1)->list)[0], 4, 'read');
};

subtest 'a string that is numeric too' => sub {
    no warnings 'numeric';
    my $packed = "12345678";
    my $number = $packed + 0;
    view_of(\$packed, 2)->prune_unstructured(1);
    is($packed, "\0" x 8, 'string');
    is($packed + 0, 0, 'the number is not remembered');
};

subtest 'read-only scalars' => sub {
    my $packed = ones(4);
    Internals::SvREADONLY($packed, 1);
    my $view = view_of(\$packed, 4);
    refused(INVALID_ARGUMENT => 'in place', sub { $view->prune_unstructured(0.5) });
    is($packed, ones(4), 'nothing is written');
    my $out = "\0" x 16;
    $view->prune_unstructured(0.5, into => [f32 => \$out]);
    is_deeply(floats($out), [1, 1, 0, 0], 'into another');
    refused(INVALID_ARGUMENT => 'into it',
        sub { $view->prune_unstructured(0.5, into => [f32 => \$packed]) });
    refused(INVALID_ARGUMENT => 'a literal',
        sub { SparseKit::View->new([f32 => \'abcd'], 1)->prune_unstructured(1) });
};

subtest 'what is no array' => sub {
    my $packed = ones(4);
    my $view   = view_of(\$packed, 4);
    my $block  = SparseKit::Block->new($view, 2);
    my ($number, $undef) = (5, undef);
    for my $wrong (undef, 'text', 3, [], {}, \$packed, $view, sub { }) {
        refused(INVALID_ARGUMENT => 'view of ' . ($wrong // 'undef'),
            sub { SparseKit::View->new($wrong, 4) });
    }
    for my $wrong (\$number, \$undef, \"\x{100}abc") {
        refused(INVALID_ARGUMENT => 'no packed string',
            sub { view_of($wrong, 1)->prune_unstructured(0) });
    }
    refused(INVALID_ARGUMENT => 'a list of texts', sub { $block->set_data(['x']) });
    refused(SHAPE_MISMATCH => 'too few', sub { $block->set_data([]) });
    refused(SHAPE_MISMATCH => 'broken', sub { view_of(\'abc', 1)->prune_unstructured(0) });
    refused(UNSUPPORTED_DTYPE => 'mask of floats', sub { $block->apply_mask([f32 => \$packed]) });
    refused(SHAPE_MISMATCH => 'mask of three', sub { $block->apply_mask([0, 0, 0]) });
    refused(INVALID_ARGUMENT => 'block of a block', sub { SparseKit::Block->new($block) });
    refused(INVALID_ARGUMENT => 'scope of a view', sub { SparseKit::Scope->new($view) });
    refused(INVALID_ARGUMENT => 'shape', sub { view_of(\$packed, [2.5]) });
    refused(INVALID_ARGUMENT => 'offset', sub { view_of(\$packed, [4], [1], 'x') });
    my $short = view_of(\$packed, 4);
    substr $packed, 8, 8, '';
    refused(OUT_OF_BOUNDS => 'a string that became too short',
        sub { $short->prune_unstructured(0.5) });
};

subtest 'what is no number' => sub {
    my $packed = ones(4);
    my $view   = view_of(\$packed, [4]);
    my $block  = SparseKit::Block->new($view, [1]);
    for my $wrong (undef, 'x', '', {}, \1) {
        my $name = $wrong // 'undef';
        refused(INVALID_ARGUMENT => "p $name",        sub { $block->norms($wrong) });
        refused(INVALID_ARGUMENT => "leaf $name",     sub { $block->leaf($wrong) });
        refused(INVALID_ARGUMENT => "sparsity $name", sub { $view->prune_unstructured($wrong) });
        next unless defined $wrong;
        refused(INVALID_ARGUMENT => "threshold $name",  sub { $block->hard_threshold($wrong) });
        refused(INVALID_ARGUMENT => "thresholds $name", sub { $block->hard_threshold([$wrong]) });
    }
    refused(INVALID_ARGUMENT => 'a fraction',  sub { $block->leaf(0.5) });
    refused(INVALID_ARGUMENT => 'beyond 32 bits', sub { $block->leaf(2**40) });
    refused(INVALID_ARGUMENT => 'flat orders', sub { SparseKit::Block->couple([$block], [0]) });
    is($packed, ones(4), 'nothing was written');
    is(join(' ', $block->norms('1e0')->list), '1 1 1 1', 'a number in a string');
};

subtest 'scopes know their members' => sub {
    my ($first, $second) = (ones(4), ones(6));
    my $pair = SparseKit::Block->couple([
        SparseKit::Block->new(view_of(\$first, [2, 2]), [1, 2]),
        SparseKit::Block->new(view_of(\$second, [2, 3]), [1, 3]),
    ]);
    my $last  = SparseKit::Block->new(SparseKit::View->new(SparseKit::array('f64', [1 .. 4]), [4, 1]));
    my $scope = SparseKit::Scope->couple([map { SparseKit::Scope->new($_) } $pair, $last]);
    is($scope->member_block(0)->leaf_count, 2, 'leaves of a coupling');
    is(join(' ', $scope->member_block(1)->norms(1)->list), '1 2 3 4', 'the arrays of a member');
    is(join(' ', $scope->leaf_view(1)->shape), '2 3', 'view of a leaf');
    is($scope->leaf_view(2)->dtype, 'f64', 'view of the last');
    refused(OUT_OF_BOUNDS => "member $_", sub { $scope->member_block($_) }) for -1, 2;
    refused(OUT_OF_BOUNDS => 'leaf', sub { $scope->leaf_view(3) });
    refused(INVALID_ARGUMENT => 'no number', sub { $scope->member_block('x') });
    $scope->close;
    refused(INVALID_ARGUMENT => 'closed', sub { $scope->member_block(0) });
};

subtest 'tied scalars' => sub {
    package Tied {
        sub TIESCALAR ($class) { bless {}, $class }
        sub FETCH ($self) { 'abcd' }
    }
    tie my $packed, 'Tied';
    refused(INVALID_ARGUMENT => 'tied', sub { view_of(\$packed, 1)->prune_unstructured(0) });
};

subtest '64-bit integers' => sub {
    my $packed = ones(1);
    my $offset = 9007199254740993;
    is(view_of(\$packed, [1], [1], $offset)->offset, $offset, 'beyond 2^53');
};

subtest 'a view keeps its array alive' => sub {
    my ($scope, $watched);
    {
        my $packed = ones(4);
        $watched = \$packed;
        weaken($watched);
        $scope = SparseKit::Scope->new(SparseKit::Block->new(view_of(\$packed, 4), 1));
    }
    ok(defined $watched, 'alive');
    is($scope->keep_top(3)->{achieved}, 3, 'used');
    $scope->close;
    ok(!defined $watched, 'gone');
};

# --- PDL ------------------------------------------------------------------------------------------

SKIP: {
    skip 'PDL is not installed' unless $have_pdl;

    subtest 'ndarrays in place' => sub {
        for my $type (qw(float double)) {
            for my $n (4, 1000) {
                my $x = PDL->ones(PDL->can($type)->(), $n);
                SparseKit::View->new($x)->prune_unstructured(0.5);
                is($x->sum, $n / 2, "$type, $n elements");
            }
        }
        my $big = PDL->ones(PDL::float(), 1000);
        is(SparseKit::address($big), unpack('J', pack 'P', ${ $big->get_dataref }), 'address');
    };

    subtest 'results are ndarrays, the last extent first' => sub {
        my $x     = PDL->sequence(PDL::float(), 4, 6);
        my $view  = SparseKit::View->new($x);
        my $block = SparseKit::Block->new($view, [2, 4]);
        is_deeply([$view->shape], [6, 4], 'shape of the view');
        my $sums = $block->norms(1);
        is_deeply([$sums->dims], [1, 3], 'dims');
        is_deeply($sums->unpdl, [[28], [92], [156]], 'sums of 0 .. 7, 8 .. 15, 16 .. 23');
        my ($total, $counts) = $block->nnz;
        is($counts->type, 'longlong', 'type of counts');
        is($total, 23, 'all but the 0');
        my ($masks) = SparseKit::Scope->new($block)->masks(1);
        is_deeply([$masks->[0]->type, $masks->[0]->dims], ['byte', 4, 6], 'mask');
        is($masks->[0]->slice(',4:5')->sum, 8, 'the last block is kept');
    };

    subtest '16-bit words' => sub {
        my $words = PDL->pdl(PDL::ushort(), 0x3c00, 0x4000);
        refused(INVALID_ARGUMENT => 'dtype not said', sub { SparseKit::View->new($words) });
        SparseKit::View->new([f16 => $words], 2)->prune_unstructured(0.5);
        is_deeply($words->unpdl, [0, 0x4000], 'f16');
        refused(UNSUPPORTED_DTYPE => 'another dtype',
            sub { SparseKit::View->new([f32 => $words], 2)->prune_unstructured(0.5) });
    };

    subtest 'types that are none' => sub {
        refused(INVALID_ARGUMENT => 'long',
            sub { SparseKit::View->new(PDL->ones(PDL::long(), 4)) });
        refused(UNSUPPORTED_DTYPE => 'view of bytes',
            sub { SparseKit::View->new(PDL->ones(PDL::byte(), 4)) });
    };

    subtest 'slices are read, not written' => sub {
        my $x     = PDL->sequence(PDL::float(), 8);
        my $slice = $x->slice('4:7');
        my $view  = SparseKit::View->new($slice);
        is(SparseKit::Block->new($view, 4)->norms(1)->sclr, 4 + 5 + 6 + 7, 'read');
        refused(INVALID_ARGUMENT => 'written', sub { $view->prune_unstructured(0.5) });
        SparseKit::View->new($x, [4], [1], 4)->prune_unstructured(0.5);
        is_deeply($x->unpdl, [0 .. 3, 0, 0, 6, 7], 'a view with an offset does it');
        is_deeply($slice->unpdl, [0, 0, 6, 7], 'and the slice sees it');
    };

    subtest 'what follows an ndarray is told' => sub {
        my $x      = PDL->ones(PDL::float(), 20);
        my $picked = $x->index(PDL->pdl(PDL::indx(), 0, 19));
        is($picked->sum, 2, 'before');
        SparseKit::View->new($x)->prune_unstructured(0.5);
        is($picked->sum, 1, 'after');
    };

    subtest 'reshaping inside a function' => sub {
        my $x     = PDL->ones(PDL::float(), 1000);
        my $block = SparseKit::Block->new(SparseKit::View->new($x), 10);
        my $sums  = $block->reduce(sub { $x->reshape(100_000); my $s = 0; $s += $_ for @_; $s });
        is($sums->sum, 1000, 'the call works on what was there');
    };
}

# --- objects --------------------------------------------------------------------------------------

sub every_object ($packed) {
    my $view     = view_of($packed, [2, 4]);
    my $block    = SparseKit::Block->new($view, [1, 2]);
    my $scope    = SparseKit::Scope->new($block);
    my $schedule = SparseKit::Schedule->custom(sub { 0.5 });
    my $masking  = SparseKit::Masking->new($schedule, prune => 'callback', prune_fn => sub { });
    $masking->add('layer', $view, mask => SparseKit::array('u8', 8));
    return ($view, $block, $scope, $schedule, $masking,
        SparseKit::Context->new(progress => sub { 0 }));
}

subtest 'objects close in any order' => sub {
    my $packed = ones(8);
    my $before = SparseKit::live_handles();
    for my $first (0 .. 5) {
        my @objects = every_object(\$packed);
        $objects[($first + $_) % 6]->close for 0 .. 5;
        $_->close for @objects;
        @objects = every_object(\$packed);
        $objects[($first - $_) % 6]->close for 0 .. 5;
        @objects = every_object(\$packed);
        undef $objects[($first + $_) % 6] for 0 .. 5;
    }
    is(SparseKit::live_handles(), $before, 'no handle is left');
};

subtest 'children work when parents are closed' => sub {
    my $packed = pack 'f*', 1 .. 4;
    my $view   = view_of(\$packed, 4);
    my $block  = SparseKit::Block->new($view, 1);
    my $scope  = SparseKit::Scope->new($block);
    $view->close;
    $block->close;
    $scope->keep_top(1);
    is_deeply(floats($packed), [0, 0, 0, 4], 'kept the largest');
};

subtest 'closed objects fail with a status' => sub {
    my $packed = ones(8);
    my @mask   = (1) x 4;
    my %calls  = (
        'SparseKit::View' => {
            (map { $_ => [] } qw(shape stride offset numel cosize format dtype)),
            linear_offset => [[0, 0]], to_param_rc => [[0, 0], 4], block_view => [[1, 2]],
            block_view_merged => [[1, 2]], broadcast_block_to_element => [[1, 2], \@mask],
            apply_mask => [[1, 2], \@mask], apply_keep_mask => [[1, 2], \@mask],
            apply_multiplier => [[1, 2], \@mask], prune_nm => [1, 2, 4],
            prune_unstructured => [0.5], soft_threshold_blocks => [[1, 2], 1],
        },
        'SparseKit::Block' => {
            (map { $_ => [] } qw(name grid_shape numblk numel_per_block numel leaf_count score_dtype
                min max nnz block_view block_view_merged broadcast_fake expand_block_tensor)),
            leaf => [0], leaf_shape => [0], leaf_view => [0], norms => [2], reduce => [sub { 1 }],
            apply_mask => [\@mask], apply_keep_mask => [\@mask], apply_multiplier => [\@mask],
            hard_threshold => [1], soft_threshold => [1], masks => [\@mask],
            set_data => [[f32 => \$packed]], broadcast_block_to_element => [\@mask],
        },
        'SparseKit::Scope' => {
            (map { $_ => [] } qw(name grid_shape numscope numblk_per_scope numel_per_scope
                member_count leaf_count score_dtype block_to_scope_view)),
            member_numblk => [0], sparsity_to_nnz => [0.5], block_norms => [2],
            block_to_scope => [[SparseKit::array('f32', 4)]], scope_to_block => [1],
            kth_largest => [1], kth_mid => [1], keep_top => [1], masks => [1],
            hard_threshold => [1], soft_threshold => [1],
        },
        'SparseKit::Schedule' => {
            position => [], step => [], rate => [], cumulative_sparsity => [1],
        },
        'SparseKit::Masking' => {
            (map { $_ => [] } qw(layer_count baseline adjusted_growth initialise densities apply step
                update stats save)),
            add => ['l2', view_of(\$packed, 8)], remove => ['layer'], remove_matching => ['lay'],
            find => ['layer'], layer_name => [0], has_layer => [0], restore => ['x'],
        },
        'SparseKit::Context' => { executor => [], threads => [], trim => [] },
    );
    for my $object (every_object(\$packed)) {
        $object->close;
        my $of_class = $calls{ ref $object };
        for my $method (sort keys %$of_class) {
            my $error = eval { my @got = $object->$method(@{ $of_class->{$method} }); 1 } ? '' : $@;
            ok(ref $error && $error->isa('SparseKit::Error'), ref($object) . "->$method")
                or diag("got '$error'");
        }
    }
    my $context = SparseKit::Context->new;
    $context->close;
    my $view = view_of(\$packed, 8);
    refused(INVALID_ARGUMENT => 'a closed context',
        sub { $view->prune_unstructured(0.5, context => $context) });
    my $closed = view_of(\$packed, 8);
    $closed->close;
    is("$closed", 'a closed view', 'as text');
};

# Where Perl takes objects apart in no order.
subtest 'objects that live to the end of the program' => sub {
    my $program = <<'END';
        use SparseKit;
        our $packed = pack 'f*', 1 .. 8;
        our $view = SparseKit::View->new([f32 => \$packed], 8);
        our $block = SparseKit::Block->new($view, 2);
        our $cycle = { block => $block };
        $cycle->{cycle} = $cycle;
        our $schedule = SparseKit::Schedule->custom(sub { $block });
        our $masking = SparseKit::Masking->new($schedule, prune => 'callback', prune_fn => sub { $view });
        package Last { sub DESTROY { eval { $main::block->norms(2) }; $main::view->close } }
        our $last = bless {}, 'Last';
        print 'end';
END
    my @command = ($^X, (map { "-I$_" } @INC), '-e', $program);
    open my $output, '-|', @command or die "perl: $!";
    is(join('', <$output>), 'end', 'it ran');
    ok(close $output, 'and ended well') or diag("status $?");
};

subtest 'exit inside a function' => sub {
    my $program = <<~'PERL';
        use SparseKit;
        my $packed = pack 'f*', 1 .. 4;
        my $block  = SparseKit::Block->new(SparseKit::View->new([f32 => \$packed], [4]), [1]);
        END { eval { $block->norms(1) }; print $@ ? $@->status_name : 'no error' }
        $block->reduce(sub { exit 3 });
        PERL
    open my $output, '-|', $^X, (map { "-I$_" } @INC), '-e', $program or die $!;
    my $said = do { local $/; <$output> };
    close $output;
    is($? >> 8, 3, 'its status');
    is($said, 'SPK_INVALID_ARGUMENT', 'END blocks cannot make calls');
};

subtest 'threads do not close the objects of others' => sub {
    plan skip_all => 'no threads' unless eval { require threads };
    no warnings 'once';
    local $PDL::no_clone_skip_warning = 1;
    my $packed = ones(8);
    my $view   = view_of(\$packed, 8);
    my $before = SparseKit::live_handles();
    threads->create(sub { 1 })->join;
    is(SparseKit::live_handles(), $before, 'handles');
    is($view->prune_unstructured(0.5)->{achieved}, 4, 'used');
};

# --- errors and functions -------------------------------------------------------------------------

my $packed = ones(8);
my $block  = SparseKit::Block->new(view_of(\$packed, 8), 2);

subtest 'errors say what is wrong, and where' => sub {
    my $array = SparseKit::array('f32', 4);
    my $line  = __LINE__ + 1;
    my $error = refused(OVERLAP => 'overlap', sub { SparseKit::View->new($array, [2, 2], [1, 1]) });
    is(ref $error, 'SparseKit::Error::Overlap', 'class');
    is($error->status, 4, 'status');
    like($error->message, qr/\(2,2\):\(1,1\)/, 'message');
    like("$error", qr/\ASPK_OVERLAP: .* at \Q$0\E line $line\.$/, 'text');
};

subtest 'misspelt options and names' => sub {
    my $view  = view_of(\$packed, 8);
    my $error = refused(INVALID_ARGUMENT => 'option', sub { $view->prune_unstructured(0, int => 1) });
    like($error->message, qr/got int, expected into/, 'message');
    my $schedule = SparseKit::Schedule->linear(0.3, 10);
    refused(INVALID_ARGUMENT => 'mode', sub { SparseKit::Masking->new($schedule, grow => 'gradients') });
    refused(INVALID_ARGUMENT => 'executor', sub { SparseKit::Context->new(executor => 'gpu') });
};

subtest 'what a function dies with comes out' => sub {
    my $object = bless {}, 'Mine';
    for my $thrown ({ a => 1 }, [1], $object, sub { 1 }) {
        eval { $block->reduce(sub { die $thrown }) };
        is(refaddr $@, refaddr $thrown, ref $thrown);
    }
    eval { $block->reduce(sub { die "text\n" }) };
    is($@, "text\n", 'text');
    package False { use overload bool => sub { 0 }, '""' => sub { '' } }
    eval { $block->reduce(sub { die bless {}, 'False' }) };
    is(ref $@, 'False', 'an object that is false');
    my $calls = 0;
    eval { $block->reduce(sub { ++$calls; die 'stop' }) };
    is($calls, 1, 'the function is called no more');
};

subtest 'functions do not touch $@' => sub {
    eval { die "before\n" };
    $block->reduce(sub { eval { die "inside\n" }; 1 });
    is($@, "before\n", 'as it was');
};

subtest 'functions must give numbers' => sub {
    for my $wrong (undef, 'x', [], {}) {
        refused(INVALID_ARGUMENT => $wrong // 'undef', sub { $block->reduce(sub { $wrong }) });
    }
    refused(INVALID_ARGUMENT => 'no function', sub { $block->reduce('x') });
    refused(INVALID_ARGUMENT => 'undef', sub { $block->reduce(undef) });
    refused(INVALID_ARGUMENT => 'undef', sub { SparseKit::Schedule->custom(undef) });
    refused(CANCELLED => 'CANCEL', sub { $block->reduce(sub { SparseKit::CANCEL }) });
};

subtest 'jumps out of a function' => sub {
    no warnings 'exiting';
    for my $once (1) {
        eval { $block->reduce(sub { last }) };
        like($@, qr/outside a loop block/, 'last');
    }
};

subtest 'functions may call the library' => sub {
    my $other = SparseKit::Context->new(executor => 'serial');
    my $sums  = $block->reduce(sub (@elements) {
        my $inner = pack 'f*', @elements;
        my $sum   = SparseKit::Block->new(view_of(\$inner, 2), 2)
            ->reduce(sub { $_[0] + $_[1] }, context => $other);
        refused(OVERLAP => 'a failure inside', sub { view_of(\$inner, [2], [0]) });
        return 10 * ($sum->list)[0];
    });
    is_deeply([$sums->list], [(20) x 4], 'results');
    refused(CANCELLED => 'a failure inside does not hide that of the call', sub {
        $block->reduce(sub { eval { view_of(\$packed, [2], [0]) }; SparseKit::CANCEL });
    });
};

subtest 'closing inside a function' => sub {
    my $before = SparseKit::live_handles();
    my $data   = ones(8);
    my $view   = view_of(\$data, 8);
    my $mine   = SparseKit::Block->new($view, 2);
    my $counts = $mine->reduce(sub { $view->close; $mine->close; scalar @_ });
    is_deeply([$counts->list], [(2) x 4], 'the call goes on');
    refused(INVALID_ARGUMENT => 'closed', sub { $mine->numblk });
    undef $mine;
    is(SparseKit::live_handles(), $before, 'handles');
};

# The string under the call is replaced, grown, freed and shared meanwhile.
subtest 'changing the array inside a function' => sub {
    my %change = (
        replaced => sub ($s) { $$s = 'short' },
        grown    => sub ($s) { $$s .= 'x' x 100_000 },
        undefined => sub ($s) { undef $$s },
        chopped  => sub ($s) { substr $$s, 0, 4, '' },
        shared   => sub ($s) { my $copy = $$s; vec($$s, 0, 8) = 1; vec($copy, 0, 8) = 2 },
        number   => sub ($s) { $$s = 5 },
        reference => sub ($s) { $$s = [] },
    );
    for my $name (sort keys %change) {
        for my $n (4, 1000) {
            my $data = ones($n);
            my $copy = $name eq 'shared' ? $data : undef;
            my $sums = SparseKit::Block->new(view_of(\$data, $n), 2)->reduce(sub ($x, $y) {
                $change{$name}->(\$data);
                my @churn = map { 'y' x (4 * $n) } 1 .. 5;
                $x + $y;
            });
            my $good = grep { $_ == 2 } $sums->list;
            # What is set in place is seen, as it is meant to be.
            ok($good >= $n / 2 - 1, "$name, $n elements");
        }
    }
};

subtest 'a mask is changed in place by prune_fn' => sub {
    my $data    = pack 'f*', 1 .. 8;
    my $mask    = "\1" x 8;
    my $masking = SparseKit::Masking->new(SparseKit::Schedule->linear(0.5, 10),
        prune    => 'callback',
        prune_fn => sub ($layer, $rate, $requested) {
            my $copy = $mask;
            vec($mask, $_, 8) = 0 for 0 .. $requested - 1;
        });
    $masking->add('layer', view_of(\$data, 8), mask => [u8 => \$mask]);
    $masking->initialise(mode => 'lottery_ticket');
    my $report = $masking->update;
    is($report->{removed}, 4, 'half are removed');
    is($mask, "\0" x 4 . "\1" x 4, 'mask');
    is_deeply(floats($data), [0, 0, 0, 0, 5 .. 8], 'weights');
    $mask .= 'is mine again';
    is(length $mask, 21, 'the string can grow again');
};

subtest 'a masking keeps the function of its schedule' => sub {
    my $data     = pack 'f*', 1 .. 8;
    my $mask     = "\1" x 8;
    my $schedule = SparseKit::Schedule->custom(sub { 0.25 });
    my $masking  = SparseKit::Masking->new($schedule);
    $masking->add('layer', view_of(\$data, 8), mask => [u8 => \$mask]);
    $schedule->close;
    undef $schedule;
    $masking->initialise(mode => 'resume');
    is($masking->update->{removed}, 2, 'a quarter is removed');
};

subtest 'the state is a string' => sub {
    my $make = sub {
        my $data    = ones(8);
        my $masking = SparseKit::Masking->new(SparseKit::Schedule->linear(0.5, 10), seed => 5);
        $masking->add('layer', view_of(\$data, 8), mask => SparseKit::array('u8', 8));
        return $masking;
    };
    my ($one, $two) = ($make->(), $make->());
    $one->initialise(mode => 'resume');
    $one->step;
    $two->restore($one->save);
    is($two->save, $one->save, 'the same state');
    is($two->stats->{nonzeros}, 8, 'stats');
    refused(INVALID_ARGUMENT => 'damaged', sub { $two->restore('damaged') });
};

subtest 'memory does not grow' => sub {
    my $resident = sub {
        open my $statm, '<', '/proc/self/statm' or return 0;
        return (split ' ', scalar readline $statm)[1] * 4;
    };
    plan skip_all => 'no /proc' unless $resident->();
    my $before_handles = SparseKit::live_handles();
    my $work           = sub {
        for (1 .. 300) {
            my $data    = ones(8);
            my @objects = every_object(\$data);
            $objects[1]->reduce(sub { scalar @_ });
            eval { $objects[1]->reduce(sub { die { big => 'x' x 10_000 } }) };
            eval { view_of(\$data, [2], [0]) };
            my $copy = $data;
            $objects[2]->keep_top(1);
            $objects[4]->save;
        }
        return $resident->();
    };
    $work->();
    my $before = $work->();
    my $after  = $work->();
    cmp_ok($after, '<', $before + 500, 'kB');
    is(SparseKit::live_handles(), $before_handles, 'handles');
};

done_testing();
