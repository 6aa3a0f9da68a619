# SPDX-License-Identifier: Apache-2.0

# Runs the cases of bindings/conformance: ruby driver.rb [--narray] CASES RESULTS. Arrays are Strings,
# or NArrays where there is a type for them.
require "sparsekit"
require "fiddle"
USE_NARRAY = ARGV.first == "--narray"
require "narray" if USE_NARRAY && ARGV.shift

# The driver's own exception, which its blocks raise.
class Thrown < StandardError; end

BYTES = { f32: 4, f64: 8, f16: 2, bf16: 2, u8: 1, i64: 8 }.freeze

# One case: the names that it gave.
class Case
  Entry = Struct.new(:array, :dtype) do
    def pair
      [array, dtype]
    end

    def bytes
      array.is_a?(String) ? array : array.to_s
    end
  end

  attr_reader :name

  def initialize(name, cases, results)
    @name = name
    @cases = cases
    @results = results
    @arrays = {}
    @objects = {}
    @order = []
    @layers = {}
  end

  def close
    @order.each(&:close)
  end

  # The result of a step.
  def run(command, fields)
    keyed, @at = fields.partition { |field| field.include?("=") }
    @key = keyed.to_h { |field| field.split("=", 2) }
    send("do_#{command}")
  rescue Thrown
    "error callback"
  rescue SparseKit::Error => e
    "error #{e.status_name} #{e.message.tr("\t\n", '  ')}"
  rescue StandardError, NotImplementedError => e
    "text the driver failed: #{e.class} #{e.message.tr("\t\n", '  ')}"
  end

  private

  # --- arguments ----------------------------------------------------------------------------------

  def integers(key)
    @key[key]&.split(",")&.map { |text| Integer(text) }
  end

  def integer(key, absent = 0)
    @key.key?(key) ? Integer(@key[key]) : absent
  end

  def number(text)
    special = { "inf" => Float::INFINITY, "-inf" => -Float::INFINITY, "nan" => Float::NAN }
    special.fetch(text) { Float(text) }
  end

  def float(key, absent = 0.0)
    @key.key?(key) ? number(@key[key]) : absent
  end

  def orders
    @key["orders"]&.split(";")&.map { |order| order.split(",").map { |text| Integer(text) } }
  end

  def array(key)
    @key.key?(key) ? @arrays.fetch(@key[key]).pair : nil
  end

  def arrays(key)
    @key[key]&.split(",")&.map { |name| @arrays.fetch(name).pair }
  end

  def object(name = @at[0])
    @objects.fetch(name)
  end

  def members
    @key["members"].split(",").map { |name| object(name) }
  end

  def context
    { context: @key.key?("context") ? object(@key["context"]) : nil }
  end

  def writing
    { into: arrays("into"), **context }
  end

  def ties
    { ties: (@key["ties"] || "by_position").to_sym }
  end

  # --- results ------------------------------------------------------------------------------------

  def keep(object)
    @objects[@at[0]] = object
    @order << object
    "ok"
  end

  def out(*results, dtype: nil)
    @key["out"]&.split(",")&.zip(results) do |name, result|
      @arrays[name] = Entry.new(result, dtype)
    end
    "ok"
  end

  def ints(*values)
    "ints #{values.flatten.map { |v| { true => 1, false => 0, nil => -1 }.fetch(v, v) }.join(',')}"
  end

  def numbers(*values)
    texts = values.flatten.map do |value|
      value = value.to_f
      next value.to_s.downcase.sub("infinity", "inf") unless value.finite?
      Kernel.format("%.17g", value)
    end
    "numbers #{texts.join(',')}"
  end

  def ok(_nothing)
    "ok"
  end

  def text(value)
    "text #{value}"
  end

  # The text of a view that a call gave.
  def formatted(view)
    text(view.format)
  ensure
    view.close
  end

  # --- arrays -------------------------------------------------------------------------------------

  def make(bytes, dtype)
    type = { f32: :SFLOAT, f64: :DFLOAT, u8: :BYTE, f16: :SINT, bf16: :SINT }[dtype]
    return bytes unless USE_NARRAY && type && !bytes.empty?
    NArray.to_na(bytes, NArray.const_get(type))
  end

  def do_array
    dtype = @at[1].to_sym
    bytes = File.binread(File.join(@cases, "data", @at[2]))
    @arrays[@at[0]] = Entry.new(make(bytes, dtype), dtype)
    "ok"
  end

  def do_zeros
    dtype = @at[1].to_sym
    @arrays[@at[0]] = Entry.new(make("\0".b * (Integer(@at[2]) * BYTES[dtype]), dtype), dtype)
    "ok"
  end

  def do_readonly
    ok(@arrays[@at[0]].array.freeze)
  end

  def do_save
    ok(File.binwrite(File.join(@results, "#{name}.#{@at[0]}.bin"), @arrays.fetch(@at[0]).bytes))
  end

  def do_address
    entry = @arrays.fetch(@at[0])
    ints(SparseKit.address(entry.pair) == own_address(entry.array))
  end

  def own_address(array)
    return Fiddle::Pointer[array].to_i if array.is_a?(String)
    # RData: flags, class, mark, free, data. NARRAY: rank, total, type, shape, ptr.
    narray = Fiddle::Pointer.new(Fiddle.dlwrap(array))[4 * Fiddle::SIZEOF_VOIDP, 8].unpack1("J")
    Fiddle::Pointer.new(narray)[24, 8].unpack1("J")
  end

  # --- structure ----------------------------------------------------------------------------------

  def do_context
    progress = { "cancel" => ->(*) { SparseKit::STOP }, "throw" => ->(*) { raise Thrown },
                 "count" => ->(*) {} }[@key["progress"]]
    keep(SparseKit::Context.new(executor: (@key["executor"] || "default").to_sym,
                                threads: integer("threads"), &progress))
  end

  def do_view
    array = [@arrays.fetch(@at[2]).array, @at[1].to_sym]
    return keep(SparseKit::View.parse(array, @at[3])) unless @key.key?("shape")
    keep(SparseKit::View.new(array, integers("shape"), stride: integers("stride"),
                                                       offset: integer("offset")))
  end

  %w[format dtype score_dtype name].each do |fact|
    define_method("do_#{fact}") { text(object.send(fact)) }
  end
  %w[shape stride offset numel cosize grid_shape numblk numel_per_block leaf_count numscope
     numblk_per_scope numel_per_scope member_count position layer_count baseline].each do |fact|
    define_method("do_#{fact}") { ints(object.send(fact)) }
  end

  def do_linear_offset
    ints(object.linear_offset(*integers("index")))
  end

  def do_to_param_rc
    ints(object.to_param_rc(integers("index"), integer("cols")))
  end

  def do_block
    keep(SparseKit::Block.new(object(@at[1]), integers("shape"), name: @key["name"]))
  end

  def do_couple
    keep(SparseKit::Block.couple(members, orders, name: @key["name"]))
  end

  def do_scope
    keep(SparseKit::Scope.new(object(@at[1]), integers("shape"), name: @key["name"]))
  end

  def do_couple_scopes
    keep(SparseKit::Scope.couple(members, orders, name: @key["name"]))
  end

  def do_close
    ok(object.close)
  end

  def do_live
    ints(SparseKit.live_handles)
  end

  def do_leaf
    ints(object.leaf_shape(Integer(@at[1])))
  end

  def do_sparsity_to_nnz
    ints(object.sparsity_to_nnz(number(@at[1])))
  end

  def reorder
    integer("reorder") == 1
  end

  def do_block_view
    formatted(object.block_view(reorder: reorder))
  end

  # An array with one number per block; views of it are only described here.
  def per_block
    ["\0".b * 8, object.score_dtype]
  end

  def do_broadcast_fake
    formatted(object.broadcast_fake(per_block))
  end

  def do_expand_block_tensor
    formatted(object.expand_block_tensor(per_block))
  end

  def do_view_block_view
    formatted(object.block_view(integers("shape"), reorder: reorder))
  end

  def do_block_to_scope_view
    formatted(object.block_to_scope_view(per_block, reorder: reorder))
  end

  # --- operations ---------------------------------------------------------------------------------

  def do_norms
    out(object.norms(float("p"), values: arrays("values"), **context), dtype: object.score_dtype)
  end
  alias do_scope_norms do_norms

  def do_min
    out(object.min(**context), dtype: object.score_dtype)
  end

  def do_max
    out(object.max(**context), dtype: object.score_dtype)
  end

  def do_nnz
    eps = { eps: float("eps", 1e-8) }
    out(object.nnz_per_block(**eps, **context).pack("q*"), dtype: :i64) if @key.key?("out")
    ints(object.nnz(**eps, **context))
  end

  # Array#sum compensates; the cases add in order.
  def in_order(elements)
    elements.inject(0.0) { |sum, x| sum + x }
  end

  def do_reduce
    function = { "sum" => method(:in_order), "throw" => ->(_) { raise Thrown },
                 "stop" => ->(_) { SparseKit::STOP } }[@key["fn"]]
    out(object.reduce(**context, &function), dtype: object.score_dtype)
  end

  def do_apply_mask
    ok(object.apply_mask(array("mask"), **writing))
  end

  def do_apply_keep_mask
    ok(object.apply_keep_mask(array("mask"), **writing))
  end

  def do_apply_multiplier
    ok(object.apply_multiplier(array("multiplier"), **writing))
  end

  def do_hard_threshold
    ints(*object.hard_threshold(array("thresholds"), values: arrays("values"), **writing))
  end

  def do_soft_threshold
    options = { eps: float("eps", -1.0), atol: float("atol", -1.0), max_iter: integer("max_iter"),
                scale: integer("scale") == 1 }
    ints(*object.soft_threshold(array("thresholds"), conditioners: arrays("conditioners"), **options,
                                                     **writing))
  end

  def do_set_data
    ok(object.set_data(arrays("source"), **context))
  end

  def do_block_masks
    out(*object.masks(array("mask"), **context), dtype: :u8)
  end

  def do_merged
    dtypes = Array.new(object.leaf_count) { |i| leaf_dtype(i) }.uniq
    out(object.merged(**context), dtype: dtypes.size == 1 ? dtypes.first : object.score_dtype)
  end

  def leaf_dtype(index)
    view = object.leaf_view(index)
    view.dtype
  ensure
    view&.close
  end

  def do_broadcast
    out(*object.broadcast(array("values"), **context), dtype: array("values")[1])
  end

  def do_view_merged
    out(object.merged(integers("shape"), **context), dtype: object.dtype)
  end

  def do_view_broadcast
    out(object.broadcast(integers("shape"), array("values"), **context), dtype: array("values")[1])
  end

  def do_view_apply_mask
    ok(object.apply_mask(integers("shape"), array("mask"), **writing))
  end

  def do_view_apply_keep_mask
    ok(object.apply_keep_mask(integers("shape"), array("mask"), **writing))
  end

  def do_view_apply_multiplier
    ok(object.apply_multiplier(integers("shape"), array("multiplier"), **writing))
  end

  def do_block_to_scope
    out(object.block_to_scope(arrays("values"), **context), dtype: arrays("values")[0][1])
  end

  def do_scope_to_block
    out(*object.scope_to_block(array("values"), **context), dtype: array("values")[1])
  end

  def scores
    { values: arrays("values"), scores: array("scores"), **context }
  end

  def do_kth_largest
    out(object.kth_largest(integers("k"), **scores), dtype: object.score_dtype)
  end

  def do_kth_mid
    out(object.kth_mid(integers("k"), k_weight: float("k_weight", 1.0), **scores),
        dtype: object.score_dtype)
  end

  def do_keep_top
    ints(*object.keep_top(integers("counts"), **scores, **ties, into: arrays("into")))
  end

  def do_masks
    masks, report = object.masks(integers("counts"), **scores, **ties,
                                                     block_mask: array("block_mask"))
    out(*masks, dtype: :u8)
    ints(*report)
  end

  def do_prune_nm
    ints(*object.prune_nm(integer("axis"), integer("n"), integer("m"), **writing))
  end

  def do_prune_unstructured
    ints(*object.prune_unstructured(float("sparsity"), **writing))
  end

  def do_soft_threshold_blocks
    ints(*object.soft_threshold_blocks(integers("shape"), float("threshold"), **writing))
  end

  # --- training -----------------------------------------------------------------------------------

  def do_schedule
    keep(new_schedule)
  end

  def new_schedule
    case @at[1]
    when "cosine"
      SparseKit::Schedule.cosine(prune_rate: float("prune_rate"), t_max: integer("t_max"),
                                 eta_min: float("eta_min"), last_epoch: integer("last_epoch", -1))
    when "linear"
      SparseKit::Schedule.linear(prune_rate: float("prune_rate"), t_max: integer("t_max"))
    when "magnitude"
      SparseKit::Schedule.magnitude(initial: float("initial"), final: float("final"),
                                    t_max: integer("t_max"), t_start: integer("t_start"),
                                    interval: integer("interval"))
    when "custom"
      throws = @key["fn"] == "throw"
      SparseKit::Schedule.custom { |t| throws ? raise(Thrown) : 1.0 / (2 + t) }
    end
  end

  def do_schedule_step
    ok(object.step(@key.key?("t") ? integer("t") : nil))
  end

  def do_rate
    numbers(object.rate(current: @key.key?("current") ? float("current") : nil))
  end

  def do_cumulative_sparsity
    numbers(object.cumulative_sparsity(integer("t")))
  end

  # Changes the first `count` bytes of a mask that have a value.
  def flip(mask, value, count)
    bytes = mask.is_a?(String) ? mask.bytes : mask.to_a.flatten
    places = bytes.each_index.select { |i| bytes[i] == value }.first(count)
    places.each do |i|
      mask.is_a?(String) ? SparseKit.write(mask, i, [1 - value].pack("C")) : mask[i] = 1 - value
    end
  end

  def do_masking
    modes = @key.slice("prune", "redistribute", "grow").to_h { |kind, mode| [kind.to_sym, mode.to_sym] }
    masks = []
    masking = SparseKit::Masking.new(object(@at[1]), seed: integer("seed"), **modes,
                                                     dense_gradients: integer("dense_gradients") == 1,
                                                     **functions(modes, masks, @key["fn"] == "throw"))
    @layers[masking] = masks
    keep(masking)
  end

  def functions(modes, masks, throws)
    functions = {}
    criterion = ->(elements) { throws ? raise(Thrown) : in_order(elements) }
    functions[:prune_criterion] = criterion if modes[:prune] == :struct_criterion
    functions[:grow_criterion] = criterion if modes[:grow] == :struct_criterion
    if modes[:prune] == :callback
      functions[:prune_fn] = lambda { |layer, _, requested|
        throws ? raise(Thrown) : flip(masks[layer], 1, requested)
      }
    end
    if modes[:grow] == :callback
      functions[:grow_fn] = lambda { |layer, requested|
        throws ? raise(Thrown) : flip(masks[layer], 0, requested)
      }
    end
    if modes[:redistribute] == :callback
      functions[:statistic_fn] = ->(layer) { throws ? raise(Thrown) : 1 + layer }
    end
    functions
  end

  def do_add
    parts = %i[mask gradient momentum adam_m1 adam_m2].to_h { |part| [part, array(part.to_s)] }
    id = object.add(@at[1], object(@at[2]), **parts)
    @layers[object] << parts[:mask][0]
    ints(id)
  end

  def do_remove
    ok(object.remove(@at[1]))
  end

  def do_remove_matching
    ints(object.remove_matching(@at[1]))
  end

  def do_has_layer
    ints(object.layer?(Integer(@at[1])))
  end

  def do_layer_name
    text(object.layer_name(Integer(@at[1])))
  end

  def do_find
    ints(object.find(@at[1]))
  end

  def mode
    { mode: @key["mode"].to_sym }
  end

  def do_initialise
    ok(object.initialise(float("density"), **mode, draw: (@key["draw"] || "exact").to_sym,
                                           counts: integers("counts"), **context))
  end

  def do_densities
    numbers(object.densities(float("density"), **mode))
  end

  def do_apply
    ok(object.apply(*@key["what"].split(",").map(&:to_sym), **context))
  end

  def do_step
    ok(object.step(**context))
  end

  def do_update
    numbers(*object.update(**context))
  end

  def do_stats
    numbers(*object.stats(@key.key?("layer") ? integer("layer") : nil))
  end

  def do_adjusted_growth
    numbers(object.adjusted_growth)
  end

  def do_state_save
    @arrays[@at[1]] = Entry.new(object.save, :u8)
    "ok"
  end

  def do_state_restore
    ok(object.restore(@arrays.fetch(@at[1]).pair))
  end
end

cases, results = ARGV
File.open(File.join(results, "results.tsv"), "w") do |out|
  current = nil
  step = 0
  File.foreach(File.join(cases, "cases.tsv"), chomp: true) do |line|
    name, command, *fields = line.split("\t")
    if name != current&.name
      current&.close
      current = Case.new(name, cases, results)
      step = 0
    end
    out.puts([name, step += 1, current.run(command, fields)].join("\t"))
  end
  current&.close
end
