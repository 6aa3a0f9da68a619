# Three ways to make weights sparse. Dies if a count is not what it must be.
#
# SPDX-License-Identifier: Apache-2.0
use v5.36;
use SparseKit;

# Numbers in (-1, 1), the same on every machine.
my $state = 1;
sub random () {
    $state = $state * 16807 % 2147483647;
    return 2 * $state / 2147483647 - 1;
}

sub random_floats ($n) { pack 'f*', map { random() } 1 .. $n }

sub nonzeros ($packed) { scalar grep { $_ != 0 } unpack 'f*', $packed }

# A view of a scalar that holds packed floats.
sub view_of ($packed, $shape) { SparseKit::View->new([f32 => $packed], $shape) }

# Of every four weights in a row, keeps the two of largest magnitude.
sub prune_2_of_4 () {
    my $weights = random_floats(64 * 128);
    view_of(\$weights, [64, 128])->prune_nm(1, 2, 4);
    printf "2:4: %d of %d weights are left\n", nonzeros($weights), 64 * 128;
    die 'wrong count' if nonzeros($weights) != 64 * 128 / 2;
}

# A hidden neuron is a row of the first layer, its bias, and a column of the second: a coupling.
# Keeps the 8 strongest of 32.
sub remove_neurons () {
    my ($w1, $b1, $w2) = map { random_floats($_) } 32 * 16, 32, 4 * 32;
    my $rows    = SparseKit::Block->new(view_of(\$w1, [32, 16]), [1, 0], 'rows');
    my $bias    = SparseKit::Block->new(view_of(\$b1, [32, 1]),  [1, 1], 'bias');
    my $columns = SparseKit::Block->new(view_of(\$w2, [4, 32]),  [0, 1], 'columns');
    my $neurons = SparseKit::Block->couple(
        [$rows, $bias, $columns], [[0, 1], [0, 1], [1, 0]], 'neurons');
    my $report = SparseKit::Scope->new($neurons)->keep_top(8);
    printf "neurons: %d of %d are left\n", $report->{achieved}, $report->{total};
    die 'wrong count' if $report->{achieved} != 8 || nonzeros($b1) != 8;
    die 'wrong count' if nonzeros($w1) != 8 * 16 || nonzeros($w2) != 4 * 8;
}

# A linear teacher uses 4 of its 32 inputs for each of 4 outputs. A student with a quarter of the
# weights has to find out which: RigL grows weights where the gradient is large.
sub train_sparsely () {
    my ($samples, $inputs, $outputs) = (64, 32, 4);
    my @x = map { [map { random() } 1 .. $inputs] } 1 .. $samples;
    my @teacher = (0) x ($outputs * $inputs);
    for my $o (0 .. $outputs - 1) {
        $teacher[$o * $inputs + $o + 7 * $_] = 1 + random() / 2 for 1 .. 4;
    }
    my $weights  = random_floats($outputs * $inputs);
    my $gradient = "\0" x length $weights;
    my $mask     = "\0" x ($outputs * $inputs);

    my $masking = SparseKit::Masking->new(SparseKit::Schedule->cosine(0.3, 300),
        seed => 1, grow => 'gradient', dense_gradients => 1);
    $masking->add('layer', view_of(\$weights, [$outputs, $inputs]),
        mask => [u8 => \$mask], gradient => [f32 => \$gradient]);
    $masking->initialise(density => 0.25, mode => 'erdos_renyi');

    # Half the mean square error; sets the gradient.
    my $loss = sub {
        my @weights = unpack 'f*', $weights;
        my @gradient = (0) x @weights;
        my $sum = 0;
        for my $sample (@x) {
            for my $o (0 .. $outputs - 1) {
                my $first = $o * $inputs;
                my $difference = 0;
                $difference += ($weights[$first + $_] - $teacher[$first + $_]) * $sample->[$_]
                    for 0 .. $inputs - 1;
                $sum += $difference**2 / (2 * $samples);
                $gradient[$first + $_] += $difference * $sample->[$_] / $samples
                    for 0 .. $inputs - 1;
            }
        }
        $gradient = pack 'f*', @gradient;
        return $sum;
    };

    my $before = $loss->();
    for my $t (1 .. 400) {
        $loss->();
        my @slopes = unpack 'f*', $gradient;
        $weights = pack 'f*', map { $_ - 0.5 * shift @slopes } unpack 'f*', $weights;
        $masking->update if $t <= 300 && $t % 10 == 0;
        $masking->step;
    }
    my $after = $loss->();
    my $ones = $mask =~ tr/\1//;
    printf "sparse training: loss %.3f before, %.6f after, %d of %d weights\n",
        $before, $after, $ones, length $mask;
    die 'wrong count' if $ones != length($mask) / 4;
    die 'not learnt' if $after >= 1e-3 || grep { $teacher[$_] && !vec $mask, $_, 8 } 0 .. $#teacher;
}

prune_2_of_4();
remove_neurons();
train_sparsely();
