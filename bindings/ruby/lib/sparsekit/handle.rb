# SPDX-License-Identifier: Apache-2.0

module SparseKit
  # What all objects of the library have in common: they are closed explicitly, in any order and
  # more than once, or left to the garbage collector. A closed one fails with InvalidArgument.
  class Handle
    class << self
      # Makes an object, gives it to the block, and closes it afterwards.
      def open(*arguments, **options)
        object = new(*arguments, **options)
        yield object
      ensure
        object&.close
      end

      # The handle of an object of this class; nil if it is closed.
      def of(object) # :nodoc:
        return object.handle if object.is_a?(self)
        raise Arrays.refusal(Flat::INVALID_ARGUMENT, name, object.class, "a #{name}")
      end

      # An object of this class that has a handle already.
      def wrap(handle, *arguments) # :nodoc:
        allocate.tap { |object| object.send(:setup, handle, *arguments) }
      end

      # The number of a mode, such as :erdos_renyi of "INIT".
      def mode(kind, name) # :nodoc:
        Flat.const_get("#{kind}_#{name.to_s.upcase}")
      rescue NameError
        raise Arrays.refusal(Flat::INVALID_ARGUMENT, kind.downcase, name.inspect, "a mode's name")
      end

      # A function as the library calls it, whose own value plays no part.
      def ignoring # :nodoc:
        Flat::Callback.new(->(numbers) { yield(*numbers).equal?(STOP) ? STOP : 0 })
      end

      # A function as the library calls it, whose value is a number.
      def function # :nodoc:
        Flat::Callback.new(->(numbers) { yield(numbers) })
      end
    end

    attr_reader :handle # :nodoc:

    # Releases the object; if a call is under way that may use it, the collector does so later.
    def close
      Flat.close(@handle)
      @handle = nil
    end

    def closed?
      @handle.nil?
    end
  end
end
