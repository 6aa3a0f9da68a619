# Runs the conformance cases: conformance.pl [--pdl] CASES RESULTS. Arrays are packed strings, or
# ndarrays of PDL.
#
# SPDX-License-Identifier: Apache-2.0
use v5.36;
use SparseKit;

my $pdl = $ARGV[0] eq '--pdl' && shift @ARGV;
if ($pdl) {
    require PDL;
    PDL->import;
}
my ($cases_folder, $results_folder) = @ARGV;

package Thrown { sub new ($class) { bless {}, $class } }

package main;

sub read_file ($path) {
    open my $file, '<:raw', $path or die "$path: $!";
    local $/;
    return scalar readline $file;
}

sub write_file ($path, $bytes) {
    open my $file, '>:raw', $path or die "$path: $!";
    print {$file} $bytes;
    close $file or die "$path: $!";
}

# --- reading arguments ----------------------------------------------------------------------------

sub numbers ($text) { defined $text ? [split /,/, $text] : undef }
sub lists ($text)   { defined $text ? [map { numbers($_) } split /;/, $text] : undef }

# --- results --------------------------------------------------------------------------------------

sub ints (@values)   { 'ints ' . join ',', @values }
sub floats (@values) {
    return 'numbers ' . join ',', map { $_ != $_ ? 'nan' : lc sprintf('%.17g', $_) } @values;
}
sub text ($value)    { "text $value" }
sub report ($report) { ints(@$report{qw(total requested achieved ties not_converged)}) }

sub failure ($thrown) {
    return 'error callback' if ref $thrown eq 'Thrown';
    return 'error ' . $thrown->status_name . ' ' . $thrown->message
        if ref $thrown && $thrown->isa('SparseKit::Error');
    return 'error none ' . $thrown =~ s/\n.*//sr;
}

# --- functions of the cases -----------------------------------------------------------------------

my $throw = sub { die Thrown->new };

sub in_order (@elements) {
    my $total = 0;
    $total += $_ for @elements;
    return $total;
}

my %reduce   = (sum => \&in_order, throw => $throw, stop => sub { SparseKit::CANCEL });
my %progress = (cancel => sub { 1 }, throw => $throw, count => sub { 0 });
my %custom   = (half => sub ($t) { 1 / (2 + $t) }, throw => $throw);

# Turns the first `count` bytes of a mask that are `from` into `to`.
sub turn ($mask, $count, $from, $to) {
    my $data = $mask->data;
    for my $i (0 .. $mask->numel - 1) {
        last if $count == 0;
        my $byte = $pdl ? $data->at($i) : vec($$data, $i, 8);
        next if $byte != $from;
        if ($pdl) {
            $data->set($i, $to);
        } else {
            vec($$data, $i, 8) = $to;
        }
        --$count;
    }
    return;
}

# --- commands -------------------------------------------------------------------------------------

# State of a case: arrays and objects by name, objects in the order of creation, masks of maskings.
my (%arrays, %objects, @order, %masks);

sub keep ($name, $object) {
    $objects{$name} = $object;
    push @order, $object;
    return 'ok';
}

sub named ($name)  { defined $name ? $arrays{$name} // die "no array $name" : undef }
sub named_list ($names) { defined $names ? [map { named($_) } split /,/, $names] : undef }

my %pdl_dtype = (float => 'f32', double => 'f64', byte => 'u8', longlong => 'i64');

# Results are ndarrays where arrays are; all are kept with their dtype.
sub store ($names, @values) {
    for my $name (split /,/, $names) {
        my $value = shift @values;
        $arrays{$name} = ref $value eq 'PDL'
            ? SparseKit::array($pdl_dtype{ $value->type }, $value)
            : $value;
    }
    return 'ok';
}

# The options of a call that are given; arrays by their names.
sub options ($o, @names) {
    my %options;
    for my $name (grep { defined $o->{$_} } @names) {
        $options{$name} = $o->{$name};
        $options{$name} = named_list($o->{$name}) if $name =~ /\A(?:into|values|conditioners)\z/;
        $options{$name} = named($o->{$name}) if $name =~ /\A(?:scores|block_mask)\z/;
    }
    $options{context} = $objects{ $o->{context} } if defined $o->{context};
    return %options;
}

my %pdl_type = (f32 => 'float', f64 => 'double', u8 => 'byte', i64 => 'longlong',
    f16 => 'ushort', bf16 => 'ushort');

sub new_array ($name, $dtype, $bytes) {
    if (!$pdl) {
        $arrays{$name} = SparseKit::array($dtype, \$bytes);
        return 'ok';
    }
    my $type = PDL->can($pdl_type{$dtype})->();
    my $data = PDL->zeroes($type, length($bytes) / PDL::Core::howbig($type->enum));
    ${ $data->get_dataref } = $bytes;
    $data->upd_data;
    $arrays{$name} = SparseKit::array($dtype, $data);
    return 'ok';
}

# Where Perl has the elements; PDL keeps few elements elsewhere, and does not tell where.
sub own_address ($array) {
    return unpack 'J', pack 'P', ${ $array->data } if !$pdl;
    return length $array->bytes > 80 ? unpack 'J', pack 'P', ${ $array->data->get_dataref } : undef;
}

sub members ($o) {
    return ([map { $objects{$_} } split /,/, $o->{members}], lists($o->{orders}), $o->{name});
}

sub described ($view) { text($view->format) }

my %schedule = (
    cosine    => [qw(prune_rate t_max eta_min last_epoch)],
    linear    => [qw(prune_rate t_max)],
    magnitude => [qw(initial final t_max t_start interval)],
);

# Each takes the positional arguments' names or objects, and a reference to the others.
my %commands = (
    array => sub ($o, $name, $dtype, $file) {
        new_array($name, $dtype, read_file("$cases_folder/data/$file"));
    },
    zeros => sub ($o, $name, $dtype, $n) {
        new_array($name, $dtype, SparseKit::array($dtype, $n)->bytes);
    },
    readonly => sub ($o, $name) {
        return text('unsupported') if $pdl;
        Internals::SvREADONLY(${ $arrays{$name}->data }, 1);
        return 'ok';
    },
    save => sub ($o, $name) {
        write_file("$results_folder/$o->{case}.$name.bin", $arrays{$name}->bytes);
        return 'ok';
    },
    address => sub ($o, $name) {
        my $own = own_address($arrays{$name}) // return text('unsupported');
        return ints(SparseKit::address($arrays{$name}) == $own ? 1 : 0);
    },
    context => sub ($o, $name) {
        my %options = map { $_ => $o->{$_} } grep { defined $o->{$_} } qw(executor threads);
        $options{progress} = $progress{ $o->{progress} } if $o->{progress};
        return keep($name, SparseKit::Context->new(%options));
    },
    view => sub ($o, $name, $dtype, $array, $layout = numbers($o->{shape})) {
        die 'another dtype' if $arrays{$array}->dtype ne $dtype;
        return keep($name, SparseKit::View->new(
            $arrays{$array}, $layout, numbers($o->{stride}), $o->{offset} // 0));
    },
    block => sub ($o, $name, $view) {
        keep($name, SparseKit::Block->new($objects{$view}, numbers($o->{shape}), $o->{name}));
    },
    scope => sub ($o, $name, $block) {
        keep($name, SparseKit::Scope->new($objects{$block}, numbers($o->{shape}), $o->{name}));
    },
    couple        => sub ($o, $name) { keep($name, SparseKit::Block->couple(members($o))) },
    couple_scopes => sub ($o, $name) { keep($name, SparseKit::Scope->couple(members($o))) },
    close         => sub ($o, $name) { $objects{$name}->close; 'ok' },
    live          => sub ($o) { ints(SparseKit::live_handles()) },
    linear_offset => sub ($o, $name) { ints($objects{$name}->linear_offset(numbers($o->{index}))) },
    to_param_rc   => sub ($o, $name) {
        ints($objects{$name}->to_param_rc(numbers($o->{index}), $o->{cols}));
    },
    leaf            => sub ($o, $name, $i) { ints($objects{$name}->leaf_shape($i)) },
    sparsity_to_nnz => sub ($o, $name, $x) { ints($objects{$name}->sparsity_to_nnz($x)) },

    norms => sub ($o, $name) {
        store($o->{out}, $objects{$name}->norms($o->{p}, options($o, 'values')));
    },
    min => sub ($o, $name) { store($o->{out}, $objects{$name}->min(options($o))) },
    max => sub ($o, $name) { store($o->{out}, $objects{$name}->max(options($o))) },
    nnz => sub ($o, $name) {
        my ($total, $counts) = $objects{$name}->nnz($o->{eps}, options($o));
        store($o->{out}, $counts) if $o->{out};
        return ints($total);
    },
    reduce => sub ($o, $name) {
        store($o->{out}, $objects{$name}->reduce($reduce{ $o->{fn} }, options($o)));
    },
    hard_threshold => sub ($o, $name) {
        report($objects{$name}->hard_threshold(
            named($o->{thresholds}), options($o, qw(values into))));
    },
    soft_threshold => sub ($o, $name) {
        report($objects{$name}->soft_threshold(named($o->{thresholds}),
            options($o, qw(conditioners eps atol max_iter scale into))));
    },
    set_data => sub ($o, $name) {
        $objects{$name}->set_data(named_list($o->{source}), options($o));
        return 'ok';
    },
    block_masks => sub ($o, $name) {
        store($o->{out}, @{ $objects{$name}->masks(named($o->{mask}), options($o)) });
    },
    block_view          => sub ($o, $name) { described($objects{$name}->block_view($o->{reorder})) },
    broadcast_fake      => sub ($o, $name) { described($objects{$name}->broadcast_fake) },
    expand_block_tensor => sub ($o, $name) { described($objects{$name}->expand_block_tensor) },
    merged    => sub ($o, $name) { store($o->{out}, $objects{$name}->block_view_merged(options($o))) },
    broadcast => sub ($o, $name) {
        store($o->{out},
            @{ $objects{$name}->broadcast_block_to_element(named($o->{values}), options($o)) });
    },
    view_block_view => sub ($o, $name) {
        described($objects{$name}->block_view(numbers($o->{shape}), $o->{reorder}));
    },
    view_merged => sub ($o, $name) {
        store($o->{out}, $objects{$name}->block_view_merged(numbers($o->{shape}), options($o)));
    },
    view_broadcast => sub ($o, $name) {
        store($o->{out}, $objects{$name}->broadcast_block_to_element(
            numbers($o->{shape}), named($o->{values}), options($o)));
    },
    scope_norms => sub ($o, $name) {
        store($o->{out}, $objects{$name}->block_norms($o->{p}, options($o)));
    },
    block_to_scope => sub ($o, $name) {
        store($o->{out}, $objects{$name}->block_to_scope(named_list($o->{values}), options($o)));
    },
    scope_to_block => sub ($o, $name) {
        store($o->{out}, @{ $objects{$name}->scope_to_block(named($o->{values}), options($o)) });
    },
    block_to_scope_view => sub ($o, $name) {
        described($objects{$name}->block_to_scope_view($o->{reorder}));
    },
    kth_largest => sub ($o, $name) {
        store($o->{out},
            $objects{$name}->kth_largest(numbers($o->{k}), options($o, qw(values scores))));
    },
    kth_mid => sub ($o, $name) {
        store($o->{out},
            $objects{$name}->kth_mid(numbers($o->{k}), options($o, qw(values scores k_weight))));
    },
    keep_top => sub ($o, $name) {
        report($objects{$name}->keep_top(
            numbers($o->{counts}), options($o, qw(values scores ties into))));
    },
    masks => sub ($o, $name) {
        my ($masks, $report) = $objects{$name}->masks(
            numbers($o->{counts}), options($o, qw(values scores block_mask ties)));
        store($o->{out}, @$masks);
        return report($report);
    },
    prune_nm => sub ($o, $name) {
        report($objects{$name}->prune_nm(@$o{qw(axis n m)}, options($o, 'into')));
    },
    prune_unstructured => sub ($o, $name) {
        report($objects{$name}->prune_unstructured($o->{sparsity}, options($o, 'into')));
    },
    soft_threshold_blocks => sub ($o, $name) {
        report($objects{$name}->soft_threshold_blocks(
            numbers($o->{shape}), $o->{threshold}, options($o, 'into')));
    },

    schedule => sub ($o, $name, $kind) {
        return keep($name, SparseKit::Schedule->custom($custom{ $o->{fn} })) if $kind eq 'custom';
        return keep($name, SparseKit::Schedule->$kind(@$o{ @{ $schedule{$kind} } }));
    },
    schedule_step => sub ($o, $name) { $objects{$name}->step($o->{t}); 'ok' },
    rate          => sub ($o, $name) { floats($objects{$name}->rate($o->{current})) },
    cumulative_sparsity => sub ($o, $name) {
        floats($objects{$name}->cumulative_sparsity($o->{t}));
    },

    masking => sub ($o, $name, $schedule) {
        my %mine;
        my %function = (
            prune_criterion => \&in_order,
            grow_criterion  => \&in_order,
            prune_fn        => sub ($layer, $rate, $requested) { turn($mine{$layer}, $requested, 1, 0) },
            grow_fn         => sub ($layer, $requested) { turn($mine{$layer}, $requested, 0, 1) },
            statistic_fn    => sub ($layer) { 1 + $layer },
        );
        my %wanted = (
            prune_criterion => ($o->{prune} // '') eq 'struct_criterion',
            grow_criterion  => ($o->{grow}  // '') eq 'struct_criterion',
            prune_fn        => ($o->{prune} // '') eq 'callback',
            grow_fn         => ($o->{grow}  // '') eq 'callback',
            statistic_fn    => ($o->{redistribute} // '') eq 'callback',
        );
        $masks{$name} = \%mine;
        return keep($name, SparseKit::Masking->new($objects{$schedule},
            options($o, qw(seed prune redistribute grow dense_gradients)),
            map { $_ => ($o->{fn} // '') eq 'throw' ? $throw : $function{$_} }
                grep { $wanted{$_} } keys %wanted));
    },
    add => sub ($o, $name, $layer, $view) {
        my $id = $objects{$name}->add($layer, $objects{$view},
            map { $_ => named($o->{$_}) } grep { defined $o->{$_} }
                qw(mask gradient momentum adam_m1 adam_m2));
        $masks{$name}{$id} = named($o->{mask});
        return ints($id);
    },
    remove          => sub ($o, $name, $layer) { $objects{$name}->remove($layer); 'ok' },
    remove_matching => sub ($o, $name, $part) { ints($objects{$name}->remove_matching($part)) },
    has_layer       => sub ($o, $name, $id) { ints($objects{$name}->has_layer($id)) },
    layer_name      => sub ($o, $name, $id) { text($objects{$name}->layer_name($id)) },
    find            => sub ($o, $name, $layer) { ints($objects{$name}->find($layer)) },
    initialise      => sub ($o, $name) {
        my %options = options($o, qw(density mode draw));
        $options{counts} = numbers($o->{counts}) if defined $o->{counts};
        $objects{$name}->initialise(%options);
        return 'ok';
    },
    densities => sub ($o, $name) { floats($objects{$name}->densities(options($o, qw(density mode)))) },
    apply     => sub ($o, $name) {
        $objects{$name}->apply([split /,/, $o->{what}], options($o));
        return 'ok';
    },
    step   => sub ($o, $name) { $objects{$name}->step(options($o)); 'ok' },
    update => sub ($o, $name) {
        my $report = $objects{$name}->update(options($o));
        return floats(@$report{
            qw(rate requested_removed removed requested_grown grown nonzeros residual)});
    },
    stats => sub ($o, $name) {
        my $stats = $objects{$name}->stats($o->{layer} // -1);
        return floats(@$stats{qw(numel nonzeros zeros density requested_density statistic rate
            requested_removed removed requested_grown grown)});
    },
    state_save => sub ($o, $name, $array) {
        return new_array($array, 'u8', $objects{$name}->save);
    },
    state_restore => sub ($o, $name, $array) {
        $objects{$name}->restore($arrays{$array}->bytes);
        return 'ok';
    },
);

# Facts: a method without arguments and the form of its result.
my %facts = (
    text  => [\&text, qw(format dtype score_dtype name)],
    ints  => [\&ints, qw(shape stride grid_shape offset numel cosize numblk numel_per_block leaf_count
        numscope numblk_per_scope numel_per_scope member_count position layer_count baseline)],
    float => [\&floats, 'adjusted_growth'],
);
for my $fact (values %facts) {
    my ($form, @names) = @$fact;
    for my $name (@names) {
        $commands{$name} = sub ($o, $object) { $form->($objects{$object}->$name) };
    }
}

for my $name (qw(apply_mask apply_keep_mask apply_multiplier)) {
    my $argument = $name eq 'apply_multiplier' ? 'multiplier' : 'mask';
    $commands{$name} = sub ($o, $block) {
        $objects{$block}->$name(named($o->{$argument}), options($o, 'into'));
        return 'ok';
    };
    $commands{"view_$name"} = sub ($o, $view) {
        $objects{$view}->$name(numbers($o->{shape}), named($o->{$argument}), options($o, 'into'));
        return 'ok';
    };
}

# --- the run --------------------------------------------------------------------------------------

sub end_case () {
    $_->close for @order;
    @order = ();
    %arrays = %objects = %masks = ();
}

sub run_step ($case, $command, @arguments) {
    my %named = (case => $case);
    my @positional;
    for my $argument (@arguments) {
        if ($argument =~ /\A(\w+)=(.*)\z/s) {
            $named{$1} = $2;
        } else {
            push @positional, $argument;
        }
    }
    my $run = $commands{$command} // return "error none unknown command $command";
    my $result = eval { $run->(\%named, @positional) };
    return defined $result ? $result : failure($@);
}

open my $cases, '<', "$cases_folder/cases.tsv" or die "cases.tsv: $!";
open my $results, '>', "$results_folder/results.tsv" or die "results.tsv: $!";
my ($case, $step) = ('', 0);
while (my $line = <$cases>) {
    chomp $line;
    my @fields = split /\t/, $line;
    if ($fields[0] ne $case) {
        end_case();
        ($case, $step) = ($fields[0], 0);
    }
    ++$step;
    print {$results} join("\t", $case, $step, run_step(@fields)), "\n";
}
end_case();
close $results or die "results.tsv: $!";
