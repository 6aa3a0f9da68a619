# SPDX-License-Identifier: Apache-2.0

# What the conformance cases cannot test: memory, closing, the garbage collector, blocks, errors.
require "fiddle"
require "minitest/autorun"
require "sparsekit"
begin
  require "narray"
rescue LoadError
  warn "no NArray: its tests are skipped"
end

# What the tests share.
module Helpers
  # 1, 2, 3, ...
  def counting(count)
    (1..count).to_a.pack("f*")
  end

  def floats(string)
    string.unpack("f*")
  end

  def block_of(string, shape)
    view = SparseKit::View.new(string, [4, string.bytesize / 16], dtype: :f32)
    SparseKit::Block.new(view, shape)
  end

  def address(string)
    Fiddle::Pointer[string].to_i
  end

  def assert_status(kind, name)
    error = assert_raises(kind) { yield }
    assert_equal name, error.status_name
    refute_empty error.message
    error
  end
end

class MemoryTest < Minitest::Test
  include Helpers

  def test_address_is_the_strings
    [counting(2), counting(200), "ab".b].each do |string|
      assert_equal address(string), SparseKit.address(string, dtype: :u8)
    end
  end

  def test_address_is_the_narrays
    skip unless defined?(NArray)
    array = NArray.sfloat(5)
    # RData: flags, class, mark, free, data. NARRAY: rank, total, type, shape, ptr.
    narray = Fiddle::Pointer.new(Fiddle.dlwrap(array))[4 * Fiddle::SIZEOF_VOIDP, 8].unpack1("J")
    assert_equal Fiddle::Pointer.new(narray)[24, 8].unpack1("J"), SparseKit.address(array)
  end

  def test_a_shared_string_is_made_independent
    original = counting(64)
    copy = original.dup # shares its bytes until one of them is written
    tail = original.byteslice(128..)
    SparseKit::View.new(original, dtype: :f32).prune_unstructured(1.0)
    assert_equal [0.0] * 64, floats(original)
    assert_equal (1..64).to_a, floats(copy)
    SparseKit::View.new(tail, dtype: :f32).prune_unstructured(1.0)
    assert_equal (1..64).to_a, floats(copy)
    assert_equal [0.0] * 32, floats(tail)
  end

  def test_frozen_arrays_are_read_but_not_written
    frozen = counting(8).freeze
    view = SparseKit::View.new(frozen, [4, 2], dtype: :f32)
    assert_status(SparseKit::InvalidArgument, "SPK_INVALID_ARGUMENT") do
      view.prune_unstructured(0.5)
    end
    into = "\0".b * 32
    view.prune_unstructured(0.5, into: into)
    assert_equal [0, 0, 0, 0, 5, 6, 7, 8], floats(into)
    assert_equal (1..8).to_a, floats(frozen)
    writable = SparseKit::View.new(counting(8), [4, 2], dtype: :f32)
    assert_status(SparseKit::InvalidArgument, "SPK_INVALID_ARGUMENT") do
      writable.prune_unstructured(0.5, into: frozen)
    end
    return unless defined?(NArray)
    narray = NArray.sfloat(4).fill(1).freeze
    view = SparseKit::View.new(narray)
    assert_raises(SparseKit::InvalidArgument) { view.prune_unstructured(0.5) }
    assert_equal 4, narray.sum
  end

  # Short strings live inside their objects, which a compacting collector moves.
  def test_arrays_do_not_move_during_a_call
    weights = [1, 2, 3, 4].pack("f*")
    block = SparseKit::Block.new(SparseKit::View.new(weights, [4], dtype: :f32))
    norms = block.reduce do |elements|
      GC.verify_compaction_references(toward: :empty, double_heap: true) if GC.respond_to?(:compact)
      10 * elements.first
    end
    assert_equal [10, 20, 30, 40], floats(norms)
  end

  def test_many_arrays_do_not_move_either
    members = Array.new(40) do |i|
      view = SparseKit::View.new([i, i + 1].pack("f*"), [2], dtype: :f32)
      SparseKit::Block.new(view)
    end
    sums = SparseKit::Block.couple(members).reduce do |elements|
      GC.verify_compaction_references(toward: :empty, double_heap: true) if GC.respond_to?(:compact)
      elements.sum
    end
    assert_equal [39 * 20, 39 * 20 + 40], floats(sums)
  end

  def test_wrong_arrays_are_refused
    new = ->(array, **options) { SparseKit::View.new(array, [2], **options) }
    assert_raises(SparseKit::InvalidArgument) { SparseKit.address([1.0, 2.0], dtype: :f32) }
    assert_raises(SparseKit::InvalidArgument) { SparseKit.address(Object.new, dtype: :f32) }
    assert_raises(SparseKit::InvalidArgument) { SparseKit.address("seven b", dtype: :f32) }
    assert_raises(SparseKit::UnsupportedDType) { new.call("\0" * 8) }
    assert_raises(SparseKit::UnsupportedDType) { new.call("\0" * 8, dtype: :f8) }
    assert_raises(SparseKit::UnsupportedDType) { new.call("\0" * 16, dtype: :i64) }
    assert_raises(SparseKit::InvalidArgument) { SparseKit::View.new(["", :f32, :sideways], [2]) }
    short = new.call(counting(1), dtype: :f32)
    assert_raises(SparseKit::Error) { short.prune_unstructured(0.5) }
    assert_raises(SparseKit::InvalidArgument) { new.call("", dtype: :f32).prune_unstructured(0.5) }
    block = block_of(counting(8), [1, 2])
    assert_raises(SparseKit::ShapeMismatch) { block.apply_mask("\0" * 3) }
    assert_raises(SparseKit::UnsupportedDType) { block.apply_mask([counting(4), :f32]) }
    error = assert_raises(SparseKit::InvalidArgument) { block.apply_mask(nil) }
    assert_equal "array: got NilClass, expected a String or an NArray", error.message
    error = assert_raises(SparseKit::ShapeMismatch) { block.norms(2, values: [counting(8)] * 2) }
    assert_match(/got 2 buffers, expected 1|got 2, expected 1/, error.message)
    assert_raises(TypeError) { SparseKit::Scope.new(block).keep_top(1.5) }
    assert_raises(SparseKit::InvalidArgument) { SparseKit::Block.new("a view", [1]) }
    assert_raises(SparseKit::InvalidArgument) { SparseKit::Context.new(executor: :magic) }
    assert_raises(TypeError) { SparseKit::View.new(counting(2), ["2"], dtype: :f32) }
  end

  def test_wrong_narrays_are_refused
    skip unless defined?(NArray)
    assert_raises(SparseKit::UnsupportedDType) { SparseKit::View.new(NArray.int(4)) }
    single = NArray.sfloat(4)
    assert_raises(SparseKit::UnsupportedDType) { SparseKit::View.new(single, dtype: :f64) }
    assert_raises(SparseKit::UnsupportedDType) { SparseKit::View.new(NArray.sint(4)) }
    assert_equal :bf16, SparseKit::View.new(NArray.sint(4), dtype: :bf16).dtype
  end

  def test_narrays_have_their_last_dimension_first
    skip unless defined?(NArray)
    weights = NArray.sfloat(3, 4).indgen! # 4 rows of 3
    block = SparseKit::Block.new(SparseKit::View.new(weights), [2, 3])
    assert_equal [2, 1], block.grid_shape
    norms = block.norms(Float::INFINITY)
    assert_equal [1, 2], norms.shape
    assert_equal [[5.0], [11.0]], norms.to_a
    block.apply_mask(NArray.byte(1, 2).fill(0).tap { |mask| mask[0, 0] = 1 })
    assert_equal [[0, 0, 0], [0, 0, 0], [6, 7, 8], [9, 10, 11]], weights.to_a
    assert_equal [0, 6], block.nnz_per_block
  end

  def test_half_words
    words = [0x3C00, 0x4000, 0xC200, 0].pack("S*") # 1, 2, -3, 0
    SparseKit::View.new(words, dtype: :f16).prune_unstructured(0.5)
    assert_equal [0, 0x4000, 0xC200, 0], words.unpack("S*")
    bfloats = [0x3F80, 0x4000, 0xC040, 0].pack("S*")
    view = SparseKit::View.new(bfloats, [2, 2], dtype: :bf16)
    assert_equal [3, 3], floats(SparseKit::Block.new(view, [1, 2]).norms(1))
  end

  def test_contiguous_layout
    # The view is the transpose of a 2 x 3 matrix; the other array lies as the transpose itself.
    values = counting(6)
    view = SparseKit::View.new(values, [3, 2], stride: [1, 3], dtype: :f32)
    SparseKit::Block.new(view).set_data([[counting(6), :f32, :contiguous]])
    assert_equal [1, 3, 5, 2, 4, 6], floats(values)
  end

  def test_numbers_are_thresholds
    values = counting(8)
    block_of(values, [1, 2]).hard_threshold([0, 100, 0, 100])
    assert_equal [1, 2, 0, 0, 5, 6, 0, 0], floats(values)
    report = block_of(values, [1, 2]).hard_threshold(6)
    assert_equal SparseKit::Report.new(4, -1, 1, 0, 0), report
  end
end

class ClosingTest < Minitest::Test
  include Helpers

  def setup
    GC.start
    @live = SparseKit.live_handles
  end

  def test_in_any_order
    values = counting(8)
    view = SparseKit::View.new(values, [4, 2], dtype: :f32)
    block = SparseKit::Block.new(view, [1, 2])
    scope = SparseKit::Scope.new(block)
    [view, block, block].each(&:close)
    scope.keep_top(1)
    assert_equal [0, 0, 0, 0, 0, 0, 7, 8], floats(values)
    scope.close
    assert_predicate scope, :closed?
    assert_equal @live, SparseKit.live_handles
  end

  def test_closed_objects_fail
    view = SparseKit::View.new(counting(8), [4, 2], dtype: :f32)
    block = SparseKit::Block.new(view, [1, 2])
    scope = SparseKit::Scope.new(block)
    [view, block, scope].each(&:close)
    [-> { view.shape }, -> { view.prune_nm(1, 1, 2) }, -> { block.norms(2) },
     -> { scope.keep_top(1) }, -> { SparseKit::Block.new(view) }, -> { SparseKit::Scope.new(block) },
     -> { SparseKit::Scope.couple([scope]) }].each do |call|
      assert_status(SparseKit::InvalidArgument, "SPK_INVALID_ARGUMENT", &call)
    end
  end

  def test_a_closed_context_is_not_the_default
    context = SparseKit::Context.new(executor: :serial)
    assert_equal [:serial, 1], [context.executor, context.threads]
    context.trim
    context.close
    assert_raises(SparseKit::InvalidArgument) { context.executor }
    block = block_of(counting(8), [1, 2])
    assert_raises(SparseKit::InvalidArgument) { block.norms(2, context: context) }
  end

  def test_open_closes
    SparseKit::View.open(counting(8), dtype: :f32) { |view| assert_equal [8], view.shape }
    assert_raises(RuntimeError) { SparseKit::View.open(counting(8), dtype: :f32) { raise "own" } }
    assert_equal @live, SparseKit.live_handles
  end

  def test_during_a_call
    block = block_of(counting(8), [1, 2])
    GC.disable # garbage of other tests would be released too
    live = SparseKit.live_handles
    sums = block.reduce do |elements|
      block.close
      assert_equal live, SparseKit.live_handles # released when nothing uses it any more
      elements.sum
    end
    assert_equal [3, 7, 11, 15], floats(sums)
    assert_raises(SparseKit::InvalidArgument) { block.numblk }
  ensure
    GC.enable
  end

  def make_garbage(count)
    count.times do |i|
      # Only the scope is kept, with the array through it.
      scope = SparseKit::Scope.new(block_of(counting(64), [1, 4]))
      GC.start if (i % 50).zero?
      assert_equal (1..16).map { |block| 4.0 * block }, floats(scope.norms(Float::INFINITY))
    end
    # A masking whose own function refers to it.
    masking = nil
    statistic = ->(_) { masking.layer_count }
    masking = SparseKit::Masking.new(SparseKit::Schedule.custom { 0.5 }, redistribute: :callback,
                                                                        statistic_fn: statistic)
  end

  def test_garbage_is_collected
    make_garbage(200)
    4.times { GC.start }
    # The collector takes some numbers on the stack for references.
    assert_operator SparseKit.live_handles, :<, @live + 20
  end

  def test_under_gc_stress
    GC.stress = true
    values = counting(8)
    context = SparseKit::Context.new(executor: :serial) { nil }
    scope = SparseKit::Scope.new(block_of(values, [1, 2]), name: "stressed")
    scope.keep_top([2], context: context)
    sums = scope.member_block(0).reduce(context: context, &:sum)
    GC.stress = false
    assert_equal [0, 0, 0, 0, 5, 6, 7, 8], floats(values)
    assert_equal [0, 0, 11, 15], floats(sums)
  ensure
    GC.stress = false
  end
end

class FunctionsTest < Minitest::Test
  include Helpers

  def setup
    @block = block_of(counting(8), [1, 2])
  end

  def test_the_own_exception_comes_out
    own = RuntimeError.new("own")
    assert_same own, assert_raises(RuntimeError) { @block.reduce { raise own } }
    assert_equal [2] * 4, floats(@block.reduce { 2 })
    assert_raises(TypeError) { @block.reduce { "no number" } }
    assert_raises(TypeError) { @block.reduce { nil } }
  end

  def test_stop
    assert_status(SparseKit::Cancelled, "SPK_CANCELLED") { @block.reduce { SparseKit::STOP } }
  end

  def test_other_ways_out
    assert_equal :thrown, (catch(:out) { @block.reduce { throw :out, :thrown } })
    assert_equal :broken, (@block.reduce { break :broken })
    assert_equal 2, floats(@block.reduce { next 2 }).first
  end

  def test_a_failure_inside_is_its_own
    serial = SparseKit::Context.new(executor: :serial)
    other = block_of(counting(8), [1, 2])
    sums = @block.reduce do |elements|
      inner = floats(other.norms(1, context: serial)).first
      assert_raises(SparseKit::InvalidArgument) { other.norms(-1, context: serial) }
      inner + elements.first
    end
    assert_equal [4, 6, 8, 10], floats(sums)
    # The context that is in use is refused.
    assert_raises(SparseKit::Error) { @block.reduce { other.norms(1) } }
  end

  def test_progress
    seen = []
    context = SparseKit::Context.new { |done, total| seen << [done, total] }
    block = block_of(counting(1 << 18), [1, 2])
    block.norms(2, context: context)
    refute_empty seen
    assert(seen.all? { |done, total| done.between?(0, total) })
    stopping = SparseKit::Context.new { SparseKit::STOP }
    assert_raises(SparseKit::Cancelled) { block.norms(2, context: stopping) }
    failing = SparseKit::Context.new { raise IndexError }
    assert_raises(IndexError) { block.norms(2, context: failing) }
  end

  def sums_between_threads(context)
    @block.reduce(context: context) do |elements|
      Thread.pass
      elements.sum
    end
  end

  def test_threads
    wanted = @block.norms(1)
    serial = SparseKit::Context.new(executor: :serial)
    threads = [nil, serial].cycle.first(8).map do |context|
      Thread.new { Array.new(50) { sums_between_threads(context) } }
    end
    assert_equal [wanted], threads.flat_map(&:value).uniq
  end
end

# Strings stay where they are while a call uses them, whatever its block does.
class LockTest < Minitest::Test
  include Helpers

  def setup
    @values = counting(512)
    @block = block_of(@values, [1, 2])
  end

  def assert_unlocked(*strings)
    strings.each { |string| string << "\0" && string.chop! }
  end

  def test_a_block_cannot_move_memory
    [-> { @values << ("x" * (1 << 20)) }, -> { @values.clear }, -> { @values.replace("") },
     -> { @values[0, 4] = "" }, -> { @values.setbyte(0, 0) }, -> { @values.slice!(4..) },
     -> { @values.freeze }, lambda {
       @values.dup
       @values.setbyte(0, 0)
     }].each do |change|
      assert_raises(RuntimeError) { @block.reduce { change.call || 0 } }
      assert_unlocked @values
    end
    assert_equal (1..512).to_a, floats(@values)
  end

  def test_memory_stays_when_the_error_is_caught
    before = address(@values)
    copies = []
    sums = @block.reduce do |elements|
      copies << @values.dup if copies.size < 3
      assert_raises(RuntimeError) { @values << "more" }
      copies.last << "more"
      GC.start if elements.first > 1000
      elements.sum
    end
    assert_equal (1..512).each_slice(2).map(&:sum), floats(sums)
    assert_equal before, address(@values)
    @block.apply_mask("\1" * 256)
    assert_equal (1..512).to_a, floats(copies.first).first(512)
  end

  def test_unlocked_on_every_way_out
    ways = [-> { @block.reduce { raise "own" } }, -> { @block.reduce { throw :out } },
            -> { @block.reduce { break } }, -> { @block.reduce { SparseKit::STOP } },
            -> { @block.reduce { "no number" } }, -> { @block.norms(-1) },
            -> { @block.apply_mask("\0" * 3) }, -> { @block.norms("2") },
            -> { @block.hard_threshold(1, into: "".b.freeze) },
            -> { SparseKit::Block.new(SparseKit::View.new(@values, dtype: :f32), ["2"]) }]
    ways.each do |way|
      catch(:out) do
        way.call
      rescue SparseKit::Error, RuntimeError, TypeError
        nil
      end
      assert_unlocked @values
    end
    thread = Thread.new { @block.reduce { Thread.stop } }
    Thread.pass until thread.stop?
    thread.kill.join
    assert_unlocked @values
  end

  def test_the_same_string_twice
    @block.hard_threshold(100, values: [@values])
    assert_unlocked @values
    both = SparseKit::Block.couple([block_of(@values, [1, 2]), block_of(@values, [1, 2])])
    assert_raises(SparseKit::Overlap) { both.norms(1) }
    assert_unlocked @values
  end

  def test_calls_inside_may_use_the_same_string
    serial = SparseKit::Context.new(executor: :serial)
    sums = @block.reduce do |elements|
      @block.apply_mask("\0" * 256, context: serial)
      assert_raises(RuntimeError) { @values << "more" } # the outer call has it still
      @block.norms(1, context: serial).unpack1("f") + elements.first
    end
    assert_equal (1..512).step(2).map { |first| first + 3 }, floats(sums)
    assert_unlocked @values
  end

  def test_a_block_that_is_left_for_another_fiber
    fiber = Fiber.new { @block.reduce { |elements| Fiber.yield || elements.sum } }
    other = block_of(counting(8), [1, 2])
    serial = SparseKit::Context.new(executor: :serial)
    sums = nil
    until sums
      sums = fiber.resume
      next if sums
      error = assert_raises(SparseKit::InvalidArgument) { other.norms(1, context: serial) }
      assert_match(/another Fiber/, error.message)
      assert_raises(RuntimeError) { @values << "more" }
    end
    assert_equal (1..512).each_slice(2).map(&:sum), floats(sums)
    assert_equal [3, 7, 11, 15], floats(other.norms(1, context: serial))
    assert_unlocked @values
  end

  # Its call never ends, and its thread makes no other; the garbage collector must not stumble.
  def test_a_fiber_that_is_given_up
    program = <<~'RUBY'
      require "sparsekit"
      values = [1.0, 2.0].pack("f*")
      block = SparseKit::Block.new(SparseKit::View.new(values, dtype: :f32))
      Thread.new do
        Fiber.new { block.reduce { Fiber.yield } }.resume
        GC.start
        begin
          block.norms(1)
        rescue SparseKit::InvalidArgument
          puts "refused"
        end
      end.join
      GC.start
      puts block.norms(1).unpack1("f")
      values << "more" rescue puts $!.message
    RUBY
    folders = $LOAD_PATH.flat_map { |folder| ["-I", folder] }
    output = IO.popen([RbConfig.ruby, *folders, "-e", program], err: %i[child out], &:read)
    assert_equal "refused\n1.0\ncan't modify string; temporarily locked\n", output
  end

  def test_write
    string = "abc".b
    assert_same string, SparseKit.write(string, 1, "xy")
    assert_equal "axy", string
    copy = string.dup
    SparseKit.write(string, 0, "z")
    assert_equal %w[zxy axy], [string, copy]
    [[2, "xy"], [-1, "x"], [4, ""], [0, "four"]].each do |at, bytes|
      assert_raises(SparseKit::OutOfBounds) { SparseKit.write(string, at, bytes) }
    end
    assert_raises(SparseKit::InvalidArgument) { SparseKit.write("a".b.freeze, 0, "b") }
    assert_raises(TypeError) { SparseKit.write(nil, 0, "b") }
    assert_equal "zxy", string
  end

  # Arguments are converted without a call of Ruby's, which could close or change the others.
  def test_no_methods_are_called_for_arguments
    sly = Object.new
    def sly.to_int = raise("called")
    def sly.to_str = raise("called")
    def sly.to_f = raise("called")
    view = SparseKit::View.new(@values, dtype: :f32)
    assert_raises(TypeError) { SparseKit::Block.new(view, [sly]) }
    assert_raises(TypeError) { SparseKit::Block.new(view, name: sly) }
    assert_raises(TypeError) { @block.norms(sly) }
  end
end

class MaskingTest < Minitest::Test
  include Helpers

  def test_functions
    weights = counting(8)
    mask = "\1" * 8
    calls = []
    masking = nil
    schedule = SparseKit::Schedule.custom { |t| t.zero? ? 0.25 : raise("t = #{t}") }
    masking = SparseKit::Masking.new(
      schedule, prune: :callback, grow: :callback, redistribute: :callback,
                prune_fn: lambda { |*arguments|
                  calls << arguments
                  SparseKit.write(mask, 6, "\0\0")
                },
                statistic_fn: ->(layer) { masking.layer_count + layer },
                grow_fn: lambda { |*arguments|
                  calls << arguments
                  SparseKit.write(mask, 6, "\1")
                  SparseKit.write(weights, 24, [0.5].pack("f"))
                }
    )
    view = SparseKit::View.new(weights, [2, 4], dtype: :f32)
    assert_equal 0, masking.add("w", view, mask: mask)
    [schedule, view].each(&:close) # the masking still calls its function
    GC.start
    masking.initialise(mode: :lottery_ticket)
    report = masking.update
    assert_equal SparseKit::UpdateReport.new(0.25, 2, 2, 1, 1, 7, 1), report
    assert_equal [[0, 0.25, 2], [0, 1]], calls # 1 = floor(0.99 x 2 inactive)
    assert_equal [1, 2, 3, 4, 5, 6, 0.5, 0], floats(weights)
    assert_equal [8, 7, 1], masking.stats(0).to_a.first(3)
    assert_raises(SparseKit::OutOfBounds) { masking.stats(-1) }
    assert_raises(SparseKit::OutOfBounds) { masking.stats(1) }
    assert_nil masking.find("v")
    assert_equal 0, masking.find("w")
    masking.step
    assert_equal "t = 1", assert_raises(RuntimeError) { masking.update }.message
  end

  def masking(weights, mask)
    schedule = SparseKit::Schedule.cosine(prune_rate: 0.3, t_max: 100)
    masking = SparseKit::Masking.new(schedule, seed: 7, grow: :random)
    masking.add("w", SparseKit::View.new(weights, [8, 8], dtype: :f32), mask: mask)
    masking
  end

  def test_a_saved_state_goes_on
    weights = counting(64)
    mask = "\0" * 64
    first = masking(weights, mask)
    first.initialise(0.5, mode: :erdos_renyi)
    second_mask = mask.dup
    second = masking(weights.dup, second_mask)
    blob = first.save
    second.restore(blob.dup.freeze)
    2.times { [first, second].each(&:update) }
    assert_equal mask, second_mask
    assert_equal first.save, second.save
    blob.setbyte(blob.bytesize / 2, blob.getbyte(blob.bytesize / 2) ^ 1)
    assert_raises(SparseKit::Error) { second.restore(blob) }
    assert_raises(SparseKit::Error) { second.restore("") }
  end

  def test_modes_have_names
    schedule = SparseKit::Schedule.linear(prune_rate: 0.3, t_max: 10)
    assert_raises(SparseKit::InvalidArgument) do
      SparseKit::Masking.new(schedule, prune: :sometimes)
    end
    assert_raises(SparseKit::InvalidArgument) { SparseKit::Masking.new(nil) }
  end
end

class ErrorsTest < Minitest::Test
  include Helpers

  def test_kinds
    overlap = -> { SparseKit::View.new(counting(8), [2, 2], stride: [1, 1], dtype: :f32) }
    error = assert_status(SparseKit::Overlap, "SPK_OVERLAP", &overlap)
    assert_equal SparseKit::Flat::OVERLAP, error.status
    assert_kind_of SparseKit::Error, error
    below = -> { SparseKit::View.new(counting(8), [2], stride: [-1], dtype: :f32) }
    assert_status(SparseKit::OutOfBounds, "SPK_OUT_OF_BOUNDS", &below)
  end

  def test_the_readme_shows_the_example
    readme = File.read(File.join(__dir__, "../README.md"))
    program = File.read(File.join(__dir__, "../example/prune.rb"))
    assert_includes readme, program[/^require.*/m]
  end
end
