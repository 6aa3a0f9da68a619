# SPDX-License-Identifier: Apache-2.0
package SparseKit;
use v5.36;

our $VERSION = '0.1.0';

use Scalar::Util ();
require XSLoader;
{
    package SparseKit::Native;
    XSLoader::load('SparseKit::Native');
}

# The constants of the headers, without SPK_.
sub _constant ($name) {
    no strict 'refs';
    my $value = ${"SparseKit::Native::$name"};
    return $value;
}

# --- errors ---------------------------------------------------------------------------------------

package SparseKit::Error;
use Carp ();
use overload '""' => sub ($self, @) { $self->as_string }, bool => sub { 1 }, fallback => 1;

my %class_of;
for my $name (qw(INVALID_ARGUMENT SHAPE_MISMATCH COUPLING OVERLAP OUT_OF_BOUNDS UNSUPPORTED_DTYPE
              OUT_OF_MEMORY NOT_CONVERGED CANCELLED UNAVAILABLE INTERNAL)) {
    my $class = 'SparseKit::Error::' . join '', map { ucfirst lc } split /_/, $name;
    $class_of{SparseKit::_constant($name)} = $class;
    no strict 'refs';
    @{"${class}::ISA"} = ('SparseKit::Error');
}

# Called by the wrapper too.
sub _throw ($status, $name, $message) {
    my $class = $class_of{$status} // 'SparseKit::Error';
    die bless {
        status => $status, status_name => $name, message => $message,
        where => Carp::shortmess('') =~ s/\A //r,
    }, $class;
}

sub status ($self)      { $self->{status} }
sub status_name ($self) { $self->{status_name} }
sub message ($self)     { $self->{message} }
sub as_string ($self)   { "$self->{status_name}: $self->{message} $self->{where}" }

package SparseKit;

sub _refuse ($what, $got, $expected) {
    my $status = _constant('INVALID_ARGUMENT');
    SparseKit::Error::_throw($status, SparseKit::Native::status_string($status),
        "$what: got $got, expected $expected");
}

# For messages.
sub _kind ($value) {
    return !defined $value ? 'undef' : ref $value ? 'a ' . ref $value : "'$value'";
}

# The number of a constant by its name in the headers, in lower case without the prefix.
sub _named ($prefix, $name) {
    return _constant($prefix . uc $name)
        // _refuse(lc substr($prefix, 0, -1), _kind($name), 'a name that the headers have');
}

# Options that nobody reads are mistakes of spelling.
sub _check_options ($options, $names = '') {
    for my $name (keys %$options) {
        _refuse('option', $name, "$names context") if " $names context " !~ / \Q$name\E /;
    }
}

sub _flag ($value) { $value ? 1 : 0 }

# A reference to a list of integers; one integer is a list of itself, undef is not given.
sub _integers ($values) { !defined $values || ref $values ? $values : [$values] }

my @report_names = qw(total requested achieved ties not_converged);

sub _report ($values) {
    my %report;
    @report{@report_names} = @$values;
    return \%report;
}

# --- arrays ---------------------------------------------------------------------------------------

my %template = (f32 => 'f', f64 => 'd', f16 => 'S', bf16 => 'S', u8 => 'C', i64 => 'q');
my %size     = (f32 => 4, f64 => 8, f16 => 2, bf16 => 2, u8 => 1, i64 => 8);
my %code     = map { $_ => _constant(uc) } keys %template;
my %dtype    = reverse %code;

my %pdl_dtype = (float => 'f32', double => 'f64', byte => 'u8', longlong => 'i64', indx => 'i64');
my %pdl_type  = (f32 => 'float', f64 => 'double', u8 => 'byte', i64 => 'longlong', f16 => 'ushort',
                 bf16 => 'ushort');

sub _code ($name) {
    return $code{$name // ''} // _refuse('dtype', _kind($name), 'f32, f64, f16, bf16, u8 or i64');
}

sub _is ($value, $class) { Scalar::Util::blessed($value) && $value->isa($class) }

package SparseKit::Array;

# [dtype code, reference to a packed string or an ndarray], which the wrapper reads.

sub new ($class, $dtype, $content) {
    my $code = SparseKit::_code($dtype);
    my $ref  = ref $content;
    if ($ref eq 'ARRAY') {
        my $packed = pack "$template{$dtype}*", @$content;
        $content = \$packed;
    } elsif (!$ref && defined $content && $content =~ /\A\d+\z/) {
        my $packed = "\0" x ($content * $size{$dtype});
        $content = \$packed;
    } elsif ($ref ne 'SCALAR' && !SparseKit::_is($content, 'PDL')) {
        SparseKit::_refuse('array', SparseKit::_kind($content),
            'a reference to a packed string or to a list, an ndarray or a length');
    }
    return bless [$code, $content], $class;
}

sub dtype ($self) { $dtype{ $self->[0] } }
sub data ($self)  { $self->[1] }
sub is_pdl ($self) { ref $self->[1] ne 'SCALAR' }

sub bytes ($self) { $self->is_pdl ? ${ $self->[1]->get_dataref } : ${ $self->[1] } }
sub numel ($self) { length($self->bytes) / $size{ $self->dtype } }
sub list ($self)  { unpack "$template{$self->dtype}*", $self->bytes }

package SparseKit;

sub array ($dtype, $content) { SparseKit::Array->new($dtype, $content) }

# [dtype => \$packed], which stands for an array.
sub _is_pair ($value) {
    return ref $value eq 'ARRAY' && @$value == 2 && ref $value->[1] && exists $code{ $value->[0] // '' };
}

# An array as the wrapper takes it.
sub _array ($value) {
    return $value if _is($value, 'SparseKit::Array') || _is($value, 'PDL');
    return SparseKit::Array->new(@$value) if _is_pair($value);
    return _refuse('array', _kind($value), 'a SparseKit::Array, [dtype => \$packed] or an ndarray');
}

# A list of arrays; one array is a list of itself, undef is not given.
sub _arrays ($values) {
    return undef unless defined $values;
    return [map { _array($_) } @$values] if ref $values eq 'ARRAY' && !_is_pair($values);
    return [_array($values)];
}

# A list of one array, which may be given as a number or a list of numbers.
sub _numbers ($values, $dtype) {
    return undef unless defined $values;
    return [_array($values)] if ref $values && (ref $values ne 'ARRAY' || _is_pair($values));
    my @numbers = ref $values ? @$values : $values;
    for my $number (@numbers) {
        next if defined $number && Scalar::Util::looks_like_number($number);
        _refuse('number', _kind($number), 'a number, a list of them or an array');
    }
    return [SparseKit::Array->new($dtype, \@numbers)];
}

sub _dtype ($array) {
    return $array->dtype if _is($array, 'SparseKit::Array');
    return $pdl_dtype{ $array->type }
        // _refuse('array', 'an ndarray of ' . $array->type,
            'float, double, byte, longlong, or ushort with f16 or bf16 said');
}

# A new array of zeros of the same kind as another: an ndarray has the last extent first.
sub _new_array ($like, $dtype, @shape) {
    my $pdl = _is($like, 'PDL') || _is($like, 'SparseKit::Array') && $like->is_pdl;
    if (!$pdl) {
        my $numel = 1;
        $numel *= $_ for @shape;
        return SparseKit::Array->new($dtype, $numel);
    }
    my $type  = PDL->can($pdl_type{$dtype})->();
    my $zeros = PDL->zeroes($type, reverse @shape);
    return $pdl_type{$dtype} eq 'ushort' ? SparseKit::Array->new($dtype, $zeros) : $zeros;
}

# --- objects --------------------------------------------------------------------------------------

package SparseKit::Object;

# A hash with `handle`, gone once closed; `owned`, functions that the library has and that live as
# long as the object; and for those over arrays `leaves`, the arrays of their leaves (undef once
# closed), and `shapes`, the shapes of the leaves' views.

my @to_release;

# Inside a function of the caller's a call is under way that may use the handle: then it waits.
sub close ($self) {
    my $handle = delete $self->{handle};
    push @to_release, [$self->_release, $handle] if defined $handle;
    $self->{leaves} = [map { undef } @{ $self->{leaves} // [] }];
    return if SparseKit::Native::busy();
    $_->[0]->($_->[1]) for splice @to_release;
}

sub DESTROY ($self) { $self->close }
sub CLONE_SKIP { 1 }

# What a coupling of members is made of: handles, arrays, shapes.
sub _join ($class, $members) {
    SparseKit::_refuse('members', SparseKit::_kind($members), 'a list') if ref $members ne 'ARRAY';
    return (
        [map { SparseKit::_handle($_, $class, 'member') } @$members],
        leaves => [map { @{ $_->{leaves} } } @$members],
        shapes => [map { @{ $_->{shapes} } } @$members],
    );
}

sub _first ($self) { $self->{leaves}[0] }

package SparseKit;

# A closed object has none.
sub _handle ($object, $class, $what) {
    _refuse($what, _kind($object), "a $class") unless _is($object, $class);
    return $object->{handle};
}

# NULL is the process default, which a closed context must not turn into.
sub _context ($options) {
    my $context = $options->{context} // return undef;
    return _handle($context, 'SparseKit::Context', 'context')
        // _refuse('context', 'a closed one', 'an open handle');
}

# Permutations one after the other.
sub _flatten ($orders) {
    return undef unless defined $orders;
    for my $list ($orders, ref $orders eq 'ARRAY' ? @$orders : ()) {
        _refuse('orders', _kind($list), 'a list of axes for each member') if ref $list ne 'ARRAY';
    }
    return [map { @$_ } @$orders];
}

# Defines methods that give a fact of the handle.
sub _facts ($class, $prefix, @names) {
    no strict 'refs';
    for my $name (@names) {
        my $fact = \&{"SparseKit::Native::$prefix$name"};
        *{"${class}::$name"} = sub ($self) {
            my $value = $fact->($self->{handle});
            return ref $value ? @$value : $value;
        };
    }
}

# A function of the caller's, as the library has it.
package SparseKit::Function;

sub new ($class, $code, $result = \&number) {
    return undef unless defined $code;
    SparseKit::_refuse('function', SparseKit::_kind($code), 'a reference to a function')
        unless ref $code eq 'CODE';
    my $callback = SparseKit::Native::new_Callback(sub { $result->(scalar $code->(@_)) });
    return bless { handle => $callback }, $class;
}

sub handle ($self) { $self->{handle} }
sub CLONE_SKIP { 1 }

sub DESTROY ($self) {
    my $callback = delete $self->{handle};
    SparseKit::Native::delete_Callback($callback) if defined $callback;
}

my $cancel = bless {}, 'SparseKit::Cancel';

sub number ($value) {
    return $value if SparseKit::_is($value, 'SparseKit::Cancel');
    return 0 + $value if defined $value && Scalar::Util::looks_like_number($value);
    return SparseKit::_refuse('result of a function', SparseKit::_kind($value), 'a number');
}

sub ignored ($value) { SparseKit::_is($value, 'SparseKit::Cancel') ? $value : 0 }
sub stop_if_true ($value) { $value ? $cancel : 0 }

sub optional ($function) { defined $function ? $function->handle : undef }

package SparseKit;

sub CANCEL { $cancel }

# --- contexts -------------------------------------------------------------------------------------

package SparseKit::Context;
our @ISA = ('SparseKit::Object');

sub _release { \&SparseKit::Native::delete_ContextHandle }

sub new ($class, %options) {
    SparseKit::_check_options(\%options, 'executor threads progress');
    my $progress = SparseKit::Function->new($options{progress}, \&SparseKit::Function::stop_if_true);
    my $handle   = SparseKit::Native::context_create(
        SparseKit::_named('EXECUTOR_', $options{executor} // 'default'),
        $options{threads} // 0, SparseKit::Function::optional($progress));
    return bless { handle => $handle, owned => [$progress] }, $class;
}

sub executor ($self) {
    my $code = SparseKit::Native::context_executor(SparseKit::_context({ context => $self }));
    my ($name) = grep { SparseKit::_named('EXECUTOR_', $_) == $code } qw(serial tbb openmp);
    return $name // 'default';
}

sub threads ($self) { SparseKit::Native::context_threads(SparseKit::_context({ context => $self })) }
sub trim ($self)    { SparseKit::Native::context_trim(SparseKit::_context({ context => $self })) }

# --- views ----------------------------------------------------------------------------------------

package SparseKit::View;
our @ISA = ('SparseKit::Object');
use overload '""' => sub ($self, @) { $self->{handle} ? $self->format : 'a closed view' },
    bool => sub { 1 }, fallback => 1;

sub _release { \&SparseKit::Native::delete_ViewHandle }

sub _wrap ($class, $handle, $leaves) {
    my $self = bless { handle => $handle, leaves => $leaves }, $class;
    $self->{shapes} = [[$self->shape]];
    return $self;
}

sub new ($class, $array, $shape = undef, $stride = undef, $offset = 0) {
    $array = SparseKit::_array($array);
    my $dtype = SparseKit::_code(SparseKit::_dtype($array));
    $shape //= [reverse $array->dims] if SparseKit::_is($array, 'PDL');
    my $text   = defined $shape && !ref $shape && $shape !~ /\A-?\d+\z/;
    my $handle = $text
        ? SparseKit::Native::view_parse($dtype, $shape)
        : SparseKit::Native::view_create(
            $dtype, SparseKit::_integers($shape), SparseKit::_integers($stride), $offset);
    return $class->_wrap($handle, [$array]);
}

SparseKit::_facts(__PACKAGE__, 'view_', qw(shape stride offset numel cosize format));

sub dtype ($self) { $dtype{ SparseKit::Native::view_dtype($self->{handle}) } }
sub array ($self) { $self->_first }

sub linear_offset ($self, $index) {
    return SparseKit::Native::view_linear_offset($self->{handle}, SparseKit::_integers($index));
}

sub to_param_rc ($self, $index, $cols) {
    return @{ SparseKit::Native::view_to_param_rc(
        $self->{handle}, SparseKit::_integers($index), $cols) };
}

sub block_view ($self, $shape, $reorder = 0) {
    my $handle = SparseKit::Native::view_block_view_of(
        $self->{handle}, SparseKit::_integers($shape), SparseKit::_flag($reorder));
    return (ref $self)->_wrap($handle, $self->{leaves});
}

sub block_view_merged ($self, $shape, %options) {
    SparseKit::_check_options(\%options);
    my $out = SparseKit::_new_array($self->_first, $self->dtype, $self->numel);
    SparseKit::Native::view_block_view_merged(SparseKit::_context(\%options), $self->{handle},
        $self->{leaves}, SparseKit::_integers($shape), [$out]);
    return $out;
}

sub broadcast_block_to_element ($self, $shape, $values, %options) {
    SparseKit::_check_options(\%options);
    $values = SparseKit::_numbers($values, 'f64');
    my $out = SparseKit::_new_array(
        $self->_first, $values ? SparseKit::_dtype($values->[0]) : 'f64', $self->shape);
    SparseKit::Native::view_broadcast_block_to_element(SparseKit::_context(\%options),
        $self->{handle}, SparseKit::_integers($shape), $values, [$out]);
    return $out;
}

# Zeroing and scaling of blocks, for views (which name the blocks' shape) and blocks.
my %block_writer = (apply_mask => 'u8', apply_keep_mask => 'u8', apply_multiplier => 'f64');
for my $name (keys %block_writer) {
    no strict 'refs';
    my ($of_view, $of_block) = map { \&{"SparseKit::Native::${_}_$name"} } qw(view block);
    *{"SparseKit::View::$name"} = sub ($self, $shape, $values, %options) {
        SparseKit::_check_options(\%options, 'into');
        $of_view->(SparseKit::_context(\%options), $self->{handle}, $self->{leaves},
            SparseKit::_arrays($options{into}), SparseKit::_integers($shape),
            SparseKit::_numbers($values, $block_writer{$name}));
        return;
    };
    *{"SparseKit::Block::$name"} = sub ($self, $values, %options) {
        SparseKit::_check_options(\%options, 'into');
        $of_block->(SparseKit::_context(\%options), $self->{handle}, $self->{leaves},
            SparseKit::_arrays($options{into}), SparseKit::_numbers($values, $block_writer{$name}));
        return;
    };
}

sub prune_nm ($self, $axis, $n, $m, %options) {
    SparseKit::_check_options(\%options, 'into');
    return SparseKit::_report(SparseKit::Native::prune_nm(SparseKit::_context(\%options),
        $self->{handle}, $self->{leaves}, SparseKit::_arrays($options{into}), $axis, $n, $m));
}

sub prune_unstructured ($self, $sparsity, %options) {
    SparseKit::_check_options(\%options, 'into');
    return SparseKit::_report(SparseKit::Native::prune_unstructured(SparseKit::_context(\%options),
        $self->{handle}, $self->{leaves}, SparseKit::_arrays($options{into}), $sparsity));
}

sub soft_threshold_blocks ($self, $shape, $threshold, %options) {
    SparseKit::_check_options(\%options, 'into');
    return SparseKit::_report(SparseKit::Native::soft_threshold_blocks(
        SparseKit::_context(\%options), $self->{handle}, $self->{leaves},
        SparseKit::_arrays($options{into}), SparseKit::_integers($shape), $threshold));
}

# --- blocks and scopes ----------------------------------------------------------------------------

for my $kind (qw(block scope)) {
    no strict 'refs';
    my ($hard, $soft, $dtype_of)
        = map { \&{"SparseKit::Native::${kind}_$_"} } qw(hard_threshold soft_threshold score_dtype);
    my $class = 'SparseKit::' . ucfirst $kind;

    *{"${class}::score_dtype"} = sub ($self) { $dtype{ $dtype_of->($self->{handle}) } };

    *{"${class}::hard_threshold"} = sub ($self, $thresholds, %options) {
        SparseKit::_check_options(\%options, 'values into');
        return SparseKit::_report($hard->(SparseKit::_context(\%options), $self->{handle},
            $self->{leaves}, SparseKit::_arrays($options{into}),
            SparseKit::_numbers($thresholds, 'f64'), SparseKit::_arrays($options{values})));
    };

    *{"${class}::soft_threshold"} = sub ($self, $thresholds, %options) {
        SparseKit::_check_options(\%options, 'conditioners eps atol max_iter scale into');
        return SparseKit::_report($soft->(SparseKit::_context(\%options), $self->{handle},
            $self->{leaves}, SparseKit::_arrays($options{into}),
            SparseKit::_numbers($thresholds, 'f64'), SparseKit::_arrays($options{conditioners}),
            $options{eps} // -1, $options{atol} // -1, $options{max_iter} // 0,
            SparseKit::_flag($options{scale})));
    };
}

package SparseKit::Block;
our @ISA = ('SparseKit::Object');

sub _release { \&SparseKit::Native::delete_BlockHandle }

sub new ($class, $view, $shape = undef, $name = undef) {
    my $handle = SparseKit::Native::block_create(
        SparseKit::_handle($view, 'SparseKit::View', 'view'), SparseKit::_integers($shape), $name);
    return bless { handle => $handle, leaves => $view->{leaves}, shapes => $view->{shapes} }, $class;
}

sub couple ($class, $members, $orders = undef, $name = undef) {
    my ($handles, @arrays) = $class->_join($members);
    my $handle = SparseKit::Native::block_couple($handles, SparseKit::_flatten($orders), $name);
    return bless { handle => $handle, @arrays }, $class;
}

SparseKit::_facts(__PACKAGE__, 'block_',
    qw(name grid_shape numblk numel_per_block numel leaf_count));

sub leaf ($self, $index) {
    my $handle = SparseKit::Native::block_leaf($self->{handle}, $index);
    return bless {
        handle => $handle, leaves => [$self->{leaves}[$index]], shapes => [$self->{shapes}[$index]],
    }, ref $self;
}

sub leaf_shape ($self, $index) { @{ SparseKit::Native::block_leaf_shape($self->{handle}, $index) } }

sub leaf_view ($self, $index) {
    my $handle = SparseKit::Native::block_leaf_view($self->{handle}, $index);
    return SparseKit::View->_wrap($handle, [$self->{leaves}[$index]]);
}

# A new array of one number per block.
sub _per_block ($self, $dtype = $self->score_dtype) {
    return SparseKit::_new_array($self->_first, $dtype, $self->grid_shape);
}

# New arrays, one per leaf.
sub _per_leaf ($self, $dtype) {
    return [map { SparseKit::_new_array($self->_first, $dtype, @$_) } @{ $self->{shapes} }];
}

sub norms ($self, $p, %options) {
    SparseKit::_check_options(\%options, 'values');
    my $out = $self->_per_block;
    SparseKit::Native::block_norms(SparseKit::_context(\%options), $self->{handle},
        SparseKit::_arrays($options{values}) // $self->{leaves}, $p, [$out]);
    return $out;
}

for my $name (qw(min max)) {
    no strict 'refs';
    my $measure = \&{"SparseKit::Native::block_$name"};
    *$name = sub ($self, %options) {
        SparseKit::_check_options(\%options);
        my $out = $self->_per_block;
        $measure->(SparseKit::_context(\%options), $self->{handle}, $self->{leaves}, [$out]);
        return $out;
    };
}

sub reduce ($self, $code, %options) {
    SparseKit::_check_options(\%options);
    my $out      = $self->_per_block;
    my $function = SparseKit::Function->new($code // _no_function());
    SparseKit::Native::block_reduce(SparseKit::_context(\%options), $self->{handle},
        $self->{leaves}, $function->handle, [$out]);
    return $out;
}

sub _no_function { SparseKit::_refuse('function', 'undef', 'a reference to a function') }

sub nnz ($self, $eps = undef, %options) {
    SparseKit::_check_options(\%options);
    my $counts = $self->_per_block('i64');
    my $total  = SparseKit::Native::block_nnz(SparseKit::_context(\%options), $self->{handle},
        $self->{leaves}, $eps // SparseKit::_constant('NNZ_EPS'), [$counts]);
    return wantarray ? ($total, $counts) : $total;
}

sub set_data ($self, $source, %options) {
    SparseKit::_check_options(\%options);
    SparseKit::Native::block_set_data(SparseKit::_context(\%options), $self->{handle},
        $self->{leaves}, SparseKit::_arrays($source));
    return;
}

sub masks ($self, $block_mask, %options) {
    SparseKit::_check_options(\%options);
    my $out = $self->_per_leaf('u8');
    SparseKit::Native::block_get_masks(SparseKit::_context(\%options), $self->{handle},
        SparseKit::_numbers($block_mask, 'u8'), $out);
    return $out;
}

sub block_view ($self, $reorder = 0) {
    my $handle = SparseKit::Native::block_block_view($self->{handle}, SparseKit::_flag($reorder));
    return SparseKit::View->_wrap($handle, $self->{leaves});
}

# The leaves' dtype if they agree, else that of scores.
sub _common_dtype ($self) {
    my $scores = $self->score_dtype;
    my %dtypes = map { SparseKit::_dtype($_) => 1 } @{ $self->{leaves} };
    return keys %dtypes == 1 ? (keys %dtypes)[0] : $scores;
}

sub block_view_merged ($self, %options) {
    SparseKit::_check_options(\%options);
    my $out = SparseKit::_new_array(
        $self->_first, $self->_common_dtype, $self->grid_shape, $self->numel_per_block);
    SparseKit::Native::block_block_view_merged(
        SparseKit::_context(\%options), $self->{handle}, $self->{leaves}, [$out]);
    return $out;
}

sub broadcast_block_to_element ($self, $values, %options) {
    SparseKit::_check_options(\%options);
    $values = SparseKit::_numbers($values, 'f64');
    my $out = $self->_per_leaf($values ? SparseKit::_dtype($values->[0]) : 'f64');
    SparseKit::Native::block_broadcast_block_to_element(
        SparseKit::_context(\%options), $self->{handle}, $values, $out);
    return $out;
}

for my $name (qw(broadcast_fake expand_block_tensor)) {
    no strict 'refs';
    my $describe = \&{"SparseKit::Native::block_$name"};
    *$name = sub ($self, $dtype = $self->score_dtype) {
        return SparseKit::View->_wrap($describe->($self->{handle}, SparseKit::_code($dtype)), []);
    };
}

package SparseKit::Scope;
our @ISA = ('SparseKit::Object');

sub _release { \&SparseKit::Native::delete_ScopeHandle }

sub new ($class, $block, $shape = undef, $name = undef) {
    my $handle = SparseKit::Native::scope_create(
        SparseKit::_handle($block, 'SparseKit::Block', 'block'), SparseKit::_integers($shape), $name);
    return bless { handle => $handle, leaves => $block->{leaves}, shapes => $block->{shapes} },
        $class;
}

sub couple ($class, $members, $orders = undef, $name = undef) {
    my ($handles, @arrays) = $class->_join($members);
    my $handle = SparseKit::Native::scope_couple($handles, SparseKit::_flatten($orders), $name);
    return bless { handle => $handle, @arrays }, $class;
}

SparseKit::_facts(__PACKAGE__, 'scope_',
    qw(name grid_shape numscope numblk_per_scope numel_per_scope member_count leaf_count));

sub leaf_view ($self, $index) {
    my $handle = SparseKit::Native::scope_leaf_view($self->{handle}, $index);
    return SparseKit::View->_wrap($handle, [$self->{leaves}[$index]]);
}

sub member_block ($self, $index) {
    my $block = sub ($i) {
        my $handle = SparseKit::Native::scope_member_block($self->{handle}, $i);
        return bless { handle => $handle }, 'SparseKit::Block';
    };
    my $member = $block->($index);
    my $first  = 0;
    $first += $block->($_)->leaf_count for 0 .. $index - 1;
    my @range = $first .. $first + $member->leaf_count - 1;
    $member->{leaves} = [@{ $self->{leaves} }[@range]];
    $member->{shapes} = [@{ $self->{shapes} }[@range]];
    return $member;
}

sub member_numblk ($self, $index) {
    return SparseKit::Native::scope_member_numblk($self->{handle}, $index);
}

sub sparsity_to_nnz ($self, $sparsity) {
    return SparseKit::Native::scope_sparsity_to_nnz($self->{handle}, $sparsity);
}

# New arrays: one number per scope, and one per block, arranged by scope.
sub _per_scope ($self) {
    return SparseKit::_new_array($self->_first, $self->score_dtype, $self->grid_shape);
}

sub _by_scope ($self, $dtype) {
    return SparseKit::_new_array(
        $self->_first, $dtype, $self->grid_shape, $self->numblk_per_scope);
}

sub block_norms ($self, $p, %options) {
    SparseKit::_check_options(\%options);
    my $out = $self->_by_scope($self->score_dtype);
    SparseKit::Native::scope_block_norms(
        SparseKit::_context(\%options), $self->{handle}, $self->{leaves}, $p, [$out]);
    return $out;
}

sub block_to_scope ($self, $values, %options) {
    SparseKit::_check_options(\%options);
    $values = SparseKit::_arrays($values) // [];
    my $out = $self->_by_scope(@$values ? SparseKit::_dtype($values->[0]) : $self->score_dtype);
    SparseKit::Native::scope_block_to_scope(
        SparseKit::_context(\%options), $self->{handle}, $values, [$out]);
    return $out;
}

sub block_to_scope_view ($self, $reorder = 0, $dtype = $self->score_dtype) {
    my $handle = SparseKit::Native::scope_block_to_scope_view(
        $self->{handle}, SparseKit::_code($dtype), SparseKit::_flag($reorder));
    return SparseKit::View->_wrap($handle, []);
}

sub scope_to_block ($self, $values, %options) {
    SparseKit::_check_options(\%options);
    $values = SparseKit::_numbers($values, 'f64');
    my $dtype = $values ? SparseKit::_dtype($values->[0]) : 'f64';
    my @out   = map {
        SparseKit::_new_array($self->_first, $dtype, $self->member_numblk($_) * $self->numscope)
    } 0 .. $self->member_count - 1;
    SparseKit::Native::scope_scope_to_block(
        SparseKit::_context(\%options), $self->{handle}, $values, \@out);
    return \@out;
}

# Values and scores of a selection: the leaves' own values if nothing else is given.
sub _sources ($self, $options) {
    my $given = grep { defined $options->{$_} } qw(values scores block_mask);
    return (
        $given ? SparseKit::_arrays($options->{values}) : $self->{leaves},
        SparseKit::_numbers($options->{scores}, $self->score_dtype),
    );
}

sub kth_largest ($self, $k, %options) {
    SparseKit::_check_options(\%options, 'values scores');
    my $out = $self->_per_scope;
    SparseKit::Native::scope_kth_largest(SparseKit::_context(\%options), $self->{handle},
        $self->_sources(\%options), SparseKit::_integers($k), [$out]);
    return $out;
}

sub kth_mid ($self, $k, %options) {
    SparseKit::_check_options(\%options, 'values scores k_weight');
    my $out = $self->_per_scope;
    SparseKit::Native::scope_kth_mid(SparseKit::_context(\%options), $self->{handle},
        $self->_sources(\%options), SparseKit::_integers($k), $options{k_weight} // 1, [$out]);
    return $out;
}

sub keep_top ($self, $counts, %options) {
    SparseKit::_check_options(\%options, 'values scores ties into');
    return SparseKit::_report(SparseKit::Native::scope_keep_top(SparseKit::_context(\%options),
        $self->{handle}, $self->{leaves}, SparseKit::_arrays($options{into}),
        SparseKit::_integers($counts), SparseKit::_arrays($options{values}),
        SparseKit::_numbers($options{scores}, $self->score_dtype),
        SparseKit::_named('TIES_', $options{ties} // 'by_position')));
}

sub masks ($self, $counts, %options) {
    SparseKit::_check_options(\%options, 'values scores block_mask ties');
    my @out = map { SparseKit::_new_array($self->_first, 'u8', @$_) } @{ $self->{shapes} };
    my $report = SparseKit::Native::scope_get_masks(SparseKit::_context(\%options),
        $self->{handle}, $self->_sources(\%options),
        SparseKit::_numbers($options{block_mask}, 'u8'), SparseKit::_integers($counts),
        SparseKit::_named('TIES_', $options{ties} // 'by_position'), \@out);
    return (\@out, SparseKit::_report($report));
}

# --- schedules ------------------------------------------------------------------------------------

package SparseKit::Schedule;
our @ISA = ('SparseKit::Object');

sub _release { \&SparseKit::Native::delete_ScheduleHandle }

sub cosine ($class, $prune_rate, $t_max, $eta_min = undef, $last_epoch = undef) {
    my $handle = SparseKit::Native::schedule_create_cosine(
        $prune_rate, $t_max, $eta_min // 0, $last_epoch // -1);
    return bless { handle => $handle }, $class;
}

sub linear ($class, $prune_rate, $t_max) {
    return bless { handle => SparseKit::Native::schedule_create_linear($prune_rate, $t_max) }, $class;
}

sub magnitude ($class, $initial, $final, $t_max, $t_start, $interval) {
    my $handle = SparseKit::Native::schedule_create_magnitude(
        $initial, $final, $t_max, $t_start, $interval);
    return bless { handle => $handle }, $class;
}

sub custom ($class, $code) {
    my $function = SparseKit::Function->new($code // SparseKit::Block::_no_function());
    my $handle   = SparseKit::Native::schedule_create_custom($function->handle);
    return bless { handle => $handle, owned => [$function] }, $class;
}

SparseKit::_facts(__PACKAGE__, 'schedule_', 'position');

sub step ($self, $t = undef) {
    return SparseKit::Native::schedule_step_to($self->{handle}, $t) if defined $t;
    return SparseKit::Native::schedule_step($self->{handle});
}

sub rate ($self, $current = undef) {
    return SparseKit::Native::schedule_rate_from($self->{handle}, $current) if defined $current;
    return SparseKit::Native::schedule_rate($self->{handle});
}

sub cumulative_sparsity ($self, $t) {
    return SparseKit::Native::schedule_cumulative_sparsity($self->{handle}, $t);
}

# --- maskings -------------------------------------------------------------------------------------

package SparseKit::Masking;
our @ISA = ('SparseKit::Object');

my @roles = qw(weight mask gradient momentum adam_m1 adam_m2);

sub _release { \&SparseKit::Native::delete_MaskingHandle }

sub new ($class, $schedule, %options) {
    SparseKit::_check_options(\%options, 'seed prune redistribute grow dense_gradients prune_fn'
        . ' prune_criterion statistic_fn grow_fn grow_criterion');
    my $from = SparseKit::_handle($schedule, 'SparseKit::Schedule', 'schedule');
    my %function = (
        (map { $_ => SparseKit::Function->new($options{$_}, \&SparseKit::Function::ignored) }
            qw(prune_fn grow_fn)),
        (map { $_ => SparseKit::Function->new($options{$_}) }
            qw(prune_criterion statistic_fn grow_criterion)),
    );
    my $handle = SparseKit::Native::masking_create($from, $options{seed} // 0,
        SparseKit::_named('PRUNE_', $options{prune} // 'magnitude'),
        SparseKit::_named('REDISTRIBUTE_', $options{redistribute} // 'none'),
        SparseKit::_named('GROW_', $options{grow} // 'none'),
        SparseKit::_flag($options{dense_gradients}),
        map { SparseKit::Function::optional($function{$_}) }
            qw(prune_fn prune_criterion statistic_fn grow_fn grow_criterion));
    return bless {
        handle => $handle, owned => [values %function, $schedule->{owned}],
        map { $_ => [] } @roles,
    }, $class;
}

sub add ($self, $name, $view, %arrays) {
    SparseKit::_check_options(\%arrays, 'mask gradient momentum adam_m1 adam_m2');
    my $from  = SparseKit::_handle($view, 'SparseKit::View', 'view');
    my %given = map { $_ => defined $arrays{$_} ? SparseKit::_array($arrays{$_}) : undef } @roles;
    $given{weight} = $view->array;
    my $id = SparseKit::Native::masking_add($self->{handle}, $name, $from);
    $self->{$_}[$id] = $given{$_} for @roles;
    return $id;
}

# The arrays of layers that left are not needed any more.
sub _forget_removed ($self) {
    for my $id (grep { !$self->has_layer($_) } 0 .. $self->layer_count - 1) {
        $self->{$_}[$id] = undef for @roles;
    }
    return;
}

sub remove ($self, $name) {
    SparseKit::Native::masking_remove($self->{handle}, $name);
    return $self->_forget_removed;
}

sub remove_matching ($self, $part) {
    my $removed = SparseKit::Native::masking_remove_matching($self->{handle}, $part);
    $self->_forget_removed;
    return $removed;
}

SparseKit::_facts(__PACKAGE__, 'masking_', qw(layer_count baseline adjusted_growth));

sub find ($self, $name)     { SparseKit::Native::masking_find($self->{handle}, $name) }
sub layer_name ($self, $id) { SparseKit::Native::masking_layer_name($self->{handle}, $id) }
sub has_layer ($self, $id)  { SparseKit::Native::masking_has_layer($self->{handle}, $id) }

sub initialise ($self, %options) {
    SparseKit::_check_options(\%options, 'density mode draw counts');
    SparseKit::Native::masking_initialise(SparseKit::_context(\%options), $self->{handle},
        $self->{weight}, $self->{mask}, $options{density} // 0,
        SparseKit::_named('INIT_', $options{mode} // 'random'),
        SparseKit::_named('DRAW_', $options{draw} // 'exact'), $options{counts});
    return;
}

sub densities ($self, %options) {
    SparseKit::_check_options(\%options, 'density mode');
    my $out = SparseKit::Array->new('f64', $self->layer_count);
    SparseKit::Native::masking_densities($self->{handle}, $options{density} // 0,
        SparseKit::_named('INIT_', $options{mode} // 'random'), [$out]);
    return $out->list;
}

# What calls take that take all arrays of all layers.
sub _arguments ($self, $options) {
    SparseKit::_check_options($options);
    return (SparseKit::_context($options), $self->{handle}, map { $self->{$_} } @roles);
}

sub apply ($self, $what = ['weights'], %options) {
    my $sum = 0;
    $sum += SparseKit::_named('APPLY_', $_) for ref $what ? @$what : $what;
    SparseKit::Native::masking_apply($self->_arguments(\%options), $sum);
    return;
}

sub step ($self, %options) {
    SparseKit::Native::masking_step($self->_arguments(\%options));
    return;
}

my @update_names = qw(rate requested_removed removed requested_grown grown nonzeros residual);

sub update ($self, %options) {
    my %report;
    @report{@update_names} = @{ SparseKit::Native::masking_update($self->_arguments(\%options)) };
    return \%report;
}

my @stats_names = qw(numel nonzeros zeros density requested_density statistic rate requested_removed
                     removed requested_grown grown);

sub stats ($self, $id = -1) {
    my %stats;
    @stats{@stats_names} = @{ SparseKit::Native::masking_stats($self->{handle}, $id) };
    return \%stats;
}

sub save ($self) {
    my $blob = SparseKit::Array->new('u8', SparseKit::Native::masking_save_size($self->{handle}));
    SparseKit::Native::masking_save($self->{handle}, [$blob]);
    return $blob->bytes;
}

sub restore ($self, $blob) {
    SparseKit::Native::masking_restore($self->{handle}, [SparseKit::Array->new('u8', \$blob)]);
    return;
}

# --- library --------------------------------------------------------------------------------------

package SparseKit;

# Classes whose frames are not where the caller went wrong.
$Carp::Internal{"SparseKit$_"}++ for '', map {"::$_"}
    qw(Array Block Context Error Function Masking Native Object Schedule Scope View);

sub version           { SparseKit::Native::version() }
sub build_info        { SparseKit::Native::build_info() }
sub live_handles      { SparseKit::Native::live_handles() }
sub address ($array)  { SparseKit::Native::address([_array($array)]) }

sub executor_available ($name) {
    return SparseKit::Native::executor_available(_named('EXECUTOR_', $name));
}

1;

__END__

=head1 NAME

SparseKit - structured sparsity on arrays that you own, in place

=head1 SYNOPSIS

    use SparseKit;

    my $weights = pack 'f*', map { $_ * 37 % 101 + 1 } 0 .. 64 * 128 - 1;
    my $view    = SparseKit::View->new([f32 => \$weights], [64, 128]);
    my $report  = $view->prune_nm(1, 2, 4);    # axis 1, keep 2 of every 4

=head1 DESCRIPTION

Words and meanings are those of F<sparsekit.h> and F<training.h>. Axes, orders, indices into views,
leaf and member numbers and layer ids count from 0.

Named options come last. All working calls take C<< context => $context >>. Those that write an
object's arrays take C<into>: an array, or a reference to a list of one per leaf, that receives the
result while the object's own are only read. A misspelt option is refused.

=head1 ARRAYS

Wherever an array is asked for, these will do; none is copied:

=over

=item C<[$dtype =E<gt> \$packed]>

a scalar that holds a packed string, C<pack 'f*', ...>. It is read and written where it is, at each
call: in between it may be assigned, but must keep its length. Read-only scalars can only be read; a
string that Perl shares with a copy gets its own memory before it is written. A function of yours may
set elements of an array of the call it is in; if it gives the scalar another string, the call goes on
with the old one.

=item C<SparseKit::array($dtype, $content)>

a C<SparseKit::Array>. The content is a reference to a packed string or to a list of numbers, a length
(zeros), or an ndarray. Methods: C<dtype>, C<numel>, C<list> (the numbers), C<bytes> (a packed copy),
C<data> (the reference or ndarray).

=item an ndarray of PDL

float, double, byte or longlong. Of ushort, as C<< [f16 => $ndarray] >>. A slice of another ndarray can
only be read. Results of objects over ndarrays are ndarrays, their first dimension being the last extent.

=back

dtypes: C<f32> (pack C<f>), C<f64> (C<d>), C<u8> (C<C>, masks), C<i64> (C<q>, counts), C<f16> and
C<bf16> (C<S>, 16-bit words). Where thresholds, masks, multipliers or scores are read, a number or a
reference to a list of numbers will do.

=head1 ERRORS

Every failure dies with a C<SparseKit::Error>, of a class per status such as
C<SparseKit::Error::Overlap>: methods C<status> (a number), C<status_name> (C<SPK_OVERLAP>) and
C<message>; as a string it has all three and the place. What a function of yours dies with comes out of
the call as it is. A function that returns C<SparseKit::CANCEL> ends the call with C<SPK_CANCELLED>.

=head1 OBJECTS

Each has C<close>, which releases its handle now; else its destruction does, in any order. A closed
object fails. Objects keep their arrays and functions alive. Objects do not pass into new threads. What
is closed by a function of yours, in the middle of a call, is released after the call.

=head2 SparseKit::Context

=over

=item C<new(executor =E<gt> 'serial', threads =E<gt> 1, progress =E<gt> sub ($done, $total) { ... })>

Executors are C<default>, C<serial>, C<tbb>, C<openmp>. A true result of C<progress> cancels.

=item C<executor>, C<threads>, C<trim>

=back

=head2 SparseKit::View

=over

=item C<new($array, $shape, $stride, $offset)>, C<new($array, '(4,6):(6,1)+2')>

References to lists of elements, not bytes. Without stride row-major. Without shape that of the ndarray.

=item C<shape>, C<stride>, C<offset>, C<numel>, C<cosize>, C<format>, C<dtype>, C<array>

Facts; shape and stride are lists. As a string a view is its text form.

=item C<linear_offset(\@index)>, C<to_param_rc(\@index, $cols)>

Where an element lies; the latter gives row and column.

=item C<block_view(\@shape, $reorder)>

The blocks as a view of the same memory.

=item C<block_view_merged(\@shape)>, C<broadcast_block_to_element(\@shape, $values)>

The blocks gathered, or a value per block over its elements, in a new array.

=item C<apply_mask(\@shape, $prune_mask)>, C<apply_keep_mask(\@shape, $keep_mask)>,
C<apply_multiplier(\@shape, $multiplier)>

Zero or scale blocks. Option C<into>.

=item C<prune_nm($axis, $n, $m)>, C<prune_unstructured($sparsity)>,
C<soft_threshold_blocks(\@shape, $threshold)>

Give a report: a reference to a hash of total, requested, achieved, ties, not_converged. Option C<into>.

=back

=head2 SparseKit::Block

=over

=item C<new($view, \@shape, $name)>, C<< SparseKit::Block->couple(\@blocks, \@orders, $name) >>

Without shape blocks of one element. Orders are a permutation of grid axes per member.

=item C<name>, C<grid_shape>, C<numblk>, C<numel_per_block>, C<numel>, C<leaf_count>, C<score_dtype>,
C<leaf($i)>, C<leaf_shape($i)>, C<leaf_view($i)>

Facts.

=item C<norms($p)>, C<min>, C<max>, C<reduce(sub (@elements) { ... })>

A number per block, in a new array. Norms take C<values>.

=item C<nnz($eps)>

The number of elements above eps (1e-8); in list context also an array per block.

=item C<apply_mask($prune_mask)>, C<apply_keep_mask($keep_mask)>, C<apply_multiplier($multiplier)>

Option C<into>.

=item C<hard_threshold($thresholds)>, C<soft_threshold($thresholds)>

Give the report. Options C<into>; C<values>, or C<conditioners>, C<eps>, C<atol>, C<max_iter>, C<scale>.

=item C<set_data(\@arrays)>

Copies into the leaves.

=item C<masks($block_mask)>, C<broadcast_block_to_element($values)>

References to lists of new arrays, one per leaf.

=item C<block_view($reorder)>, C<block_view_merged>, C<broadcast_fake($dtype)>,
C<expand_block_tensor($dtype)>

Views, and the blocks gathered in a new array.

=back

=head2 SparseKit::Scope

=over

=item C<new($block, \@shape, $name)>, C<< SparseKit::Scope->couple(\@scopes, \@orders, $name) >>

=item C<name>, C<grid_shape>, C<numscope>, C<numblk_per_scope>, C<numel_per_scope>, C<member_count>,
C<leaf_count>, C<leaf_view($i)>, C<score_dtype>, C<member_block($i)>, C<member_numblk($i)>, C<sparsity_to_nnz($sparsity)>

Facts.

=item C<keep_top($counts)>

Keeps that many blocks of each scope (a number, or a reference to one per scope) and gives the report.
Options C<values>, C<scores>, C<ties> (C<by_position>, C<keep_all>), C<into>.

=item C<masks($counts)>

The same selection as keep masks: a reference to a list of one per leaf, and the report. Options
C<values>, C<scores>, C<block_mask>, C<ties>.

=item C<kth_largest($k)>, C<kth_mid($k)>

A score per scope, in a new array. Options C<values>, C<scores>, C<k_weight>.

=item C<hard_threshold>, C<soft_threshold>

As of blocks, with a threshold per scope.

=item C<block_norms($p)>, C<block_to_scope(\@arrays)>, C<scope_to_block($values)>,
C<block_to_scope_view($reorder, $dtype)>

Arrays arranged by scope, and back.

=back

=head2 SparseKit::Schedule

=over

=item C<< SparseKit::Schedule->cosine($prune_rate, $t_max, $eta_min, $last_epoch) >>, C<linear($prune_rate,
$t_max)>, C<magnitude($initial, $final, $t_max, $t_start, $interval)>, C<custom(sub ($t) { $rate })>

=item C<step>, C<step($t)>, C<position>, C<rate>, C<rate($current)>, C<cumulative_sparsity($t)>

=back

=head2 SparseKit::Masking

=over

=item C<new($schedule, %options)>

Options C<seed>, C<prune>, C<redistribute>, C<grow> (modes of F<training.h> in lower case without
prefix), C<dense_gradients>, and functions of the modes that need them: C<prune_fn> (layer, rate,
requested) and C<grow_fn> (layer, requested), which change the layer's mask; C<prune_criterion> and
C<grow_criterion> (elements); C<statistic_fn> (layer).

=item C<add($name, $view, mask =E<gt> $array, gradient =E<gt> ..., momentum =E<gt> ..., adam_m1 =E<gt> ...,
adam_m2 =E<gt> ...)>

Gives the id. The arrays are brought to every call.

=item C<remove($name)>, C<remove_matching($part)>, C<find($name)>, C<layer_name($id)>, C<has_layer($id)>,
C<layer_count>, C<baseline>, C<adjusted_growth>

=item C<initialise(density =E<gt> ..., mode =E<gt> ..., draw =E<gt> ..., counts =E<gt> \@counts)>,
C<densities(density =E<gt> ..., mode =E<gt> ...)>

Draws and applies the masks; the latter gives the list of densities alone.

=item C<step>, C<update>, C<apply(\@what)>

After each optimiser step; now and then, which gives a report (rate, requested_removed, removed,
requested_grown, grown, nonzeros, residual); C<weights>, C<momentum>, C<gradients>.

=item C<stats>, C<stats($id)>

A reference to a hash: numel, nonzeros, zeros, density, requested_density, statistic, rate,
requested_removed, removed, requested_grown, grown.

=item C<save>, C<restore($bytes)>

=back

=head1 FUNCTIONS

C<SparseKit::version>, C<SparseKit::build_info>, C<SparseKit::live_handles>,
C<SparseKit::executor_available($name)>, C<SparseKit::address($array)>: where the library finds the
first element.

=head1 LICENSE

Apache-2.0

=cut
