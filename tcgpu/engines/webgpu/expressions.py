"""What an expression of a kernel is in WGSL; see `translator`."""

import ast
from dataclasses import dataclass, replace

import numpy as np

from tcgpu.engines.kernel_language import OPERATIONS, CallersFunction, KernelTransformer, is_cuda, is_device_function
from tcgpu.engines.webgpu.numbers import BIG, WGSL, Array, NotInWgsl, Several, Value, bare, literal, mapped, unsigned
from tcgpu.errors import KernelError

VOTES = {"any_sync", "all_sync", "ballot_sync", "shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"}
BLOCK_VOTES = {"syncthreads_and", "syncthreads_or", "syncthreads_count"}
FENCES = {"threadfence", "threadfence_block", "threadfence_system"}
ATOMIC = {
    "add": "atomicAdd", "sub": "atomicSub", "or_": "atomicOr", "and_": "atomicAnd", "xor": "atomicXor",
    "max": "atomicMax", "min": "atomicMin", "exch": "atomicExchange",
}  # fmt: skip
COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


@dataclass(frozen=True)
class Parts:
    """What a variable is that has a tuple: the names of a variable for each item."""

    names: tuple
    fields: tuple


class Parted(Exception):
    """Threads part before a barrier, or lanes of a warp wait for each other: the kernel needs masks."""


def assigned(name, value):
    """The statement that assigns an expression to a variable."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


class Expressions(KernelTransformer):
    """The part of a `translator.Function` that translates expressions, and the lines of text that they need."""

    condition_node = None  # an expression of which only the truth counts

    def refuse(self, node, why):
        """KernelError: the kernel has something that WebGPU has not."""
        code = self.function.__code__
        line = code.co_firstlineno + node.lineno - 1
        raise KernelError(
            f'File "{code.co_filename}", line {line}, in {self.function.__name__}: `{ast.unparse(node)}`: {why}'
        )

    # --------------------------------------------------------------------------------------------------- lines of text

    def line(self, text):
        """A line that all threads run."""
        self.lines.append("  " * self.depth + text)

    def emit(self, text):
        """A line that the threads of the mask run."""
        self.line(f"if ({self.guard}) {{ {text} }}" if self.guard else text)

    def slot(self, kind):
        """The name of a new variable, which is declared at the begin of the function. kind: its type in WGSL."""
        self.count += 1
        self.declared[f"t{self.count}"] = kind
        return f"t{self.count}"

    def temporary(self, value, kind=None):
        """The value, computed here. kind: its type in WGSL, if it has no other."""
        if value.literal is not None:
            return value
        if self.guard and not value.uniform:
            name = self.slot(kind or self.numbers.name(value.type))
            self.emit(f"{name} = {value.text};")
        else:
            self.count += 1
            name = f"t{self.count}"
            self.line(f"let {name} = {bare(value.text)};")
        return replace(value, text=name)

    def short(self, value):
        """The value with a name as its text, for a text that has it twice."""
        return value if value.text.isidentifier() else self.temporary(value)

    def held(self, value):
        """The value as it is now: what is in memory may change."""
        return mapped(lambda each: self.temporary(each) if "[" in getattr(each, "text", "") else each, value)

    def fixed(self, value):
        """The value as it is now: variables may change, too."""
        return mapped(lambda each: self.temporary(each) if isinstance(each, Value) else each, value)

    def whole(self, value):
        """The value; a literal as an int64, also one in a tuple."""
        of = self.numbers
        return mapped(lambda each: of.cast(each, "i64") if getattr(each, "type", "") == "literal" else each, value)

    def unguarded(self, work):
        """Do `work`, which writes statements without a barrier, for the threads of the mask."""
        if not self.guard:
            return work()
        guard, flow = self.guard, self.flow
        self.line(f"if ({guard}) {{")
        self.guard, self.flow, self.depth = None, False, self.depth + 1
        done = work()
        self.guard, self.flow, self.depth = guard, flow, self.depth - 1
        self.line("}")
        return done

    def waits(self, body):
        """Of whom a thread waits for others in these statements, or in a function that they call: its "block", its
        "warp"; a set."""
        calls = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return frozenset().union(*map(self.waiting, calls))

    def waiting(self, call):
        name = self.cuda_name(call.func)
        if name:
            warp = name[0] == "syncwarp" or name[0].endswith("_sync")
            return {"warp"} if warp else {"block"} if name[0].startswith("sync") else frozenset()
        called = self.device_function(call)
        return frozenset() if called is None else self.module.function_waits(called)

    # ----------------------------------------------------------------------------------------------------- expressions

    def cuda_name(self, node):
        """("atomic", "add") of cuda.atomic.add; () of anything else."""
        names = []
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        return tuple(names) if names and is_cuda(self.named(node)) else ()

    def values(self, nodes):
        """The values of some nodes, from left to right."""
        found = []
        for node in nodes:
            found, value = self.held_before(found, lambda: self.value(node))  # noqa: B023
            found.append(value)
        return found

    def held_before(self, values, work):
        """(values, what `work` returns); values that are in memory are read before lines of `work` change it."""
        place = len(self.lines)
        done = work()
        if len(self.lines) > place:
            later, self.lines = self.lines[place:], self.lines[:place]
            values = list(map(self.held, values))
            self.lines += later
        return values, done

    def value(self, node):
        number = self.literal(node)
        if number is not None:
            return literal(number)
        handler = getattr(self, f"of_{type(node).__name__}", None)
        return handler(node) if handler else self.refuse(node, "a kernel for WebGPU has no such expression")

    def of_Constant(self, node):
        if isinstance(node.value, bool):
            return literal(node.value)
        return self.refuse(node, "WebGPU has integers and bools here")

    def of_Name(self, node):
        if node.id in self.env:
            return self.kept(node.id, node)
        if node.id in self.local:
            self.refuse(node, "it has no value yet here")
        value = self.named(node)
        if isinstance(value, (bool, np.bool_)):
            return literal(bool(value))
        if isinstance(value, np.integer) and value.dtype.name in WGSL:
            return self.numbers.known(value, WGSL[value.dtype.name])
        if value is None or isinstance(value, (float, np.ndarray, CallersFunction)):
            self.refuse(node, "a kernel for WebGPU has no value of this kind")
        return value

    def kept(self, name, node):
        """What a variable has."""
        value = self.env[name]
        if value is None:
            self.refuse(node, "what it is depends on the path by which the program came here")
        if isinstance(value, Parts):
            return Several(tuple(self.kept(part, node) for part in value.names), value.fields)
        return value

    def of_Tuple(self, node):
        return Several(tuple(self.values(node.elts)))

    def of_BinOp(self, node):
        name = OPERATIONS.get(type(node.op)) or self.refuse(node, "WebGPU has no such operation of integers")
        return self.numbers.operate(name, *self.values([node.left, node.right]))

    def of_UnaryOp(self, node):
        self.condition_node = node.operand if isinstance(node.op, ast.Not) else None
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            if value.literal is not None:
                return literal(not value.literal)
            return Value(f"!{self.numbers.cast(value, 'bool').text}", "bool", value.uniform)
        if isinstance(node.op, ast.USub):
            return self.numbers.operate("sub", literal(0), value)
        return self.numbers.inverted(value) if isinstance(node.op, ast.Invert) else value

    def of_Compare(self, node):
        calls = (each for part in node.comparators[1:] for each in ast.walk(part) if isinstance(each, ast.Call))
        if any(self.cuda_name(each.func) or self.device_function(each) for each in calls):
            self.refuse(node, "a call in a chain of comparisons may be left out: write the chain with `and`")
        values = self.values([node.left, *node.comparators])
        parts = []
        for op, left, right in zip(node.ops, values, values[1:], strict=False):
            if type(op) not in COMPARED:
                self.refuse(node, "WebGPU has no such comparison")
            parts.append(self.numbers.compare(COMPARED[type(op)], left, right))
        if len(parts) == 1:
            return parts[0]
        parts = [self.numbers.cast(part, "bool") for part in parts]
        text = " && ".join(part.text for part in parts)
        return Value(f"({text})", "bool", all(part.uniform for part in parts))

    def captured(self, work, uniform):
        """(the value that `work` returns, the lines that compute it), of a part that some threads may not reach."""
        place, guard, flow = len(self.lines), self.guard, self.flow
        self.guard, self.flow = None, flow and uniform and not guard
        value = work()
        lines, self.lines = self.lines[place:], self.lines[:place]
        self.guard, self.flow = guard, flow
        return value, lines

    def on_paths(self, node, name, test, *sides):
        """What a variable has after an `if` with these statements."""
        statement = ast.If(test, *sides)
        self.block([ast.fix_missing_locations(ast.copy_location(statement, node))])
        return self.kept(name, node)

    def of_BoolOp(self, node):
        """`and`, `or`: the right side is computed only where it counts."""
        both, condition = isinstance(node.op, ast.And), self.condition_node is node

        def part(each):
            self.condition_node = each if condition else None
            return checked(each, self.value(each))

        def checked(each, value):
            if not condition and getattr(value, "type", "") != "bool":
                self.refuse(node, f"`{ast.unparse(each)}` is no bool, and one of the numbers is chosen: use `if`")
            return literal(bool(value.literal)) if value.literal is not None else self.numbers.cast(value, "bool")

        found = part(node.values[0])
        for each in node.values[1:]:
            if found.literal is not None:
                if found.literal != both:
                    return found
                found = part(each)
                continue
            waits, uniform = self.waits([each]), found.uniform
            right, lines = (None, True) if waits else self.captured(lambda: part(each), uniform)  # noqa: B023
            if lines:
                name = f"{'both' if both else 'either'}.{each.lineno}.{each.col_offset}"
                self.assign_name(name, found)
                yes, no, right = (assigned(name, value) for value in (ast.Constant(True), ast.Constant(False), each))
                known = ast.Name(name, ast.Load())
                test = known if both else ast.UnaryOp(ast.Not(), known)
                found = self.on_paths(node, name, test, [ast.If(each, [yes], [no]) if condition else right], [])
                found = checked(each, found)
            else:
                right = self.numbers.cast(right, "bool")
                text = f"({found.text} {'&&' if both else '||'} {right.text})"
                found = Value(text, "bool", uniform and right.uniform)
        return found

    def of_IfExp(self, node):
        test = self.condition(node.test, False)
        if test.literal is not None:
            return self.value(node.body if test.literal else node.orelse)
        sides = node.body, node.orelse
        if not self.waits(sides):
            found = [self.captured(lambda: self.whole(self.value(each)), test.uniform) for each in sides]  # noqa: B023
            if not any(lines or "[" in getattr(each, "text", "[").replace("params[", "") for each, lines in found):
                (a, b), kind, uniform = self.numbers.typed(*(each for each, _ in found))
                return Value(f"select({b}, {a}, {test.text})", kind, uniform and test.uniform)
        name = f"choice.{node.lineno}.{node.col_offset}"
        self.assign_name(f"{name}.", test)
        return self.on_paths(node, name, ast.Name(f"{name}.", ast.Load()), *([assigned(name, each)] for each in sides))

    def of_Attribute(self, node):
        name = self.cuda_name(node)
        if name:
            return self.position(name, node)
        of = self.value(node.value)
        if isinstance(of, Several) and node.attr in of.fields:
            return of.items[of.fields.index(node.attr)]
        if isinstance(of, Array) and of.sizes and node.attr in ("size", "shape"):
            sizes = [self.numbers.cast(size, "i64") for size in of.sizes]
            if node.attr == "shape":
                return Several(tuple(sizes))
            return sizes[0] if len(sizes) == 1 else self.numbers.operate("mul", *sizes)
        if not isinstance(of, (Value, Several, Array)) and hasattr(of, node.attr):
            return getattr(of, node.attr)  # of a module
        return self.refuse(node, "a kernel for WebGPU has no such attribute")

    def position(self, name, node):
        """What `cuda.threadIdx.x` and others like it are."""
        found = {
            ("threadIdx", "x"): unsigned("lid", False),
            ("blockIdx", "x"): unsigned("block"),
            ("blockDim", "x"): unsigned(f"{self.module.threads}u"),
            ("gridDim", "x"): unsigned(self.module.blocks),
            ("laneid",): unsigned("(lid & 31u)", False),
            ("warpsize",): unsigned("32u"),
        }
        found |= {(of, axis): unsigned("0u") for of in ("threadIdx", "blockIdx") for axis in "yz"}
        found |= {(of, axis): unsigned("1u") for of in ("blockDim", "gridDim") for axis in "yz"}
        return found.get(name) or self.refuse(node, f"WebGPU has no cuda.{'.'.join(name)}")

    def of_Subscript(self, node):
        of = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            return self.sliced(of, node)
        index = self.value(node.slice)
        if isinstance(of, Several):
            if index.literal is None:
                self.refuse(node, "which element of a tuple must be known when the kernel is translated")
            return of.items[index.literal]
        if isinstance(of, Array) and len(of.sizes) == 2 and isinstance(index, Value):
            return self.row(of, index)
        return self.load(of, index)

    def row(self, array, index):
        rows, size = array.sizes
        if index.literal is not None and index.literal < 0:
            index = self.numbers.operate("sub", rows, literal(-index.literal))
        offset = self.numbers.operate("mul", self.numbers.cast(index, "u32"), size)
        if array.offset is not None:
            offset = self.numbers.operate("add", array.offset, offset)
        return replace(array, offset=self.temporary(offset), sizes=(size,))

    def sliced(self, array, node):
        """The elements of an array from one on."""
        if not isinstance(array, Array) or node.slice.upper or node.slice.step or len(array.sizes) > 1:
            self.refuse(node, "a slice of a kernel for WebGPU is array[first:]")
        first = self.value(node.slice.lower) if node.slice.lower else literal(0)
        if first.literal is not None and first.literal < 0:
            self.refuse(node, "a slice of a kernel for WebGPU is array[first:], and first is not negative")
        first = self.numbers.cast(first, "u32")
        first = first if first.constant is not None else self.temporary(first)  # a variable may change later
        size = array.sizes[0] if array.sizes else unsigned("0u")
        offset = first if array.offset is None else self.numbers.operate("add", array.offset, first)
        left = self.numbers.operate("sub", size, self.numbers.extreme("min", [first, size]))
        return replace(array, offset=self.short(offset), sizes=(left,))

    # -------------------------------------------------------------------------------------------------- arrays, atomics

    def place(self, array, index):
        """The number of an element, counted from the begin of the memory that the array is in, as text."""
        if not isinstance(array, Array):
            raise NotInWgsl("only an array has elements")
        indices = index.items if isinstance(index, Several) else (index,)
        if len(indices) != max(1, len(array.sizes)):
            raise NotInWgsl(f"an index is {len(array.sizes)} numbers here")
        at = None
        for k, each in enumerate(indices):
            if each.literal is not None and each.literal < 0 and array.sizes:
                each = self.numbers.operate("sub", array.sizes[k], literal(-each.literal))
            each = self.numbers.cast(each, "u32")
            if array.sizes and None not in (each.constant, array.sizes[k].constant):
                if each.constant >= array.sizes[k].constant:
                    raise NotInWgsl(f"the index {each.constant} is beyond the array's end, {array.sizes[k].constant}")
            if at is not None:
                at = self.numbers.operate("mul", at, array.sizes[k])
            at = each if at is None else self.numbers.operate("add", at, each)
        return at.text if array.offset is None else self.numbers.operate("add", array.offset, at).text

    def load(self, array, index):
        at, kind = self.place(array, index), array.type
        self.module.read.add(array.name)
        uniform = array.where == "buffer" and array.name not in self.module.written and array.offset is None
        uniform = uniform and all(each.uniform for each in getattr(index, "items", (index,)))

        def word(at):
            return f"atomicLoad(&{array.name}[{at}])" if array.name in self.module.atomic else f"{array.name}[{at}]"

        if not self.module.in_words(array):
            return Value(word(at), kind, uniform)
        if kind in BIG:
            at = self.short(unsigned(at)).text
            return Value(self.numbers.whole(word(f"2u * {at}"), word(f"2u * {at} + 1u"), kind), kind, False)
        return self.numbers.cast(unsigned(word(at), False), kind)

    def store(self, array, index, value):
        at = self.place(array, index)
        if not isinstance(value, Value):
            raise NotInWgsl("an element is a number")
        self.numbers.check_fits(value, array.type)
        value = self.numbers.cast(value, array.type)
        if array.where == "buffer":
            self.module.written.add(array.name)

        def word(at, value):
            text = f"{array.name}[{at}]"
            self.emit(f"atomicStore(&{text}, {value});" if array.name in self.module.atomic else f"{text} = {value};")

        if not self.module.in_words(array):
            word(at, value.text)
        elif array.type in BIG:
            low, high = self.numbers.words(self.short(value))
            at = self.temporary(unsigned(f"2u * {at}")).text
            word(at, low)
            word(f"{at} + 1u", high)
        else:
            word(at, self.numbers.cast(value, "u32").text)

    def atomic(self, name, array, index, *operands):
        """An atomic operation on an element; returns its value before."""
        if not isinstance(array, Array) or array.where == "local":
            raise NotInWgsl("an atomic operation is on an element of an array in memory")
        at, kind = self.place(array, index), array.type
        if array.where == "buffer":
            self.module.written.add(array.name)
        self.module.atomic.add(array.name)
        for each in operands:
            self.numbers.check_fits(each, kind)
        operands = [self.short(self.numbers.cast(each, kind)) for each in operands]
        if self.module.in_words(array):
            if kind in BIG:
                return self.atomic_of_two_words(name, array, at, kind, *operands)
            if kind == "i32" and name in ("max", "min"):
                raise NotInWgsl("WebGPU has no atomic min or max of int32 in shared memory")
            operands = [self.numbers.cast(each, "u32") for each in operands]
            return self.numbers.cast(self.atomic_of_element(name, array, at, "u32", operands), kind)
        return self.atomic_of_element(name, array, at, kind, operands)

    def atomic_of_element(self, name, array, at, kind, operands):
        texts, element = [each.text for each in operands], f"&{array.name}[{at}]"
        if name in ATOMIC:
            return self.temporary(Value(f"{ATOMIC[name]}({element}, {texts[0]})", kind, False))
        change = {
            "cas": "select({old}, {1}, {old} == {0})",
            "inc": "select({old} + {one}, {zero}, {old} >= {0})",
            "dec": "select({old} - {one}, {0}, {old} == {zero} || {old} > {0})",
        }.get(name)
        if change is None:
            raise NotInWgsl(f"WebGPU has no cuda.atomic.{name}")
        old = self.slot(self.numbers.name(kind))
        zero, one = (self.numbers.constant(number, kind) for number in (0, 1))
        self.emit(f"{old} = atomicLoad({element});")
        text = change.format(*texts, old=old, zero=zero, one=one)
        self.unguarded(lambda: self.line(
            f"loop {{ let swap = atomicCompareExchangeWeak({element}, {old}, {text}); "
            f"if (swap.exchanged) {{ break; }} {old} = swap.old_value; }}"
        ))  # fmt: skip
        return Value(old, kind, False)

    def atomic_of_two_words(self, name, array, at, kind, value):
        """An atomic operation on an element of 64 bits, in two words: what it returns is exact below 2^32."""
        if name not in ("add", "or_", "and_", "xor"):
            raise NotInWgsl(f"this device has no cuda.atomic.{name} of 64 bits")
        low, high = self.numbers.words(value)
        at = self.temporary(unsigned(f"2u * {at}")).text
        old = self.temporary(unsigned(f"{ATOMIC[name]}(&{array.name}[{at}], {low})", False)).text
        if name == "add":  # the sum of the low words may carry
            high = self.temporary(unsigned(f"{high} + select(0u, 1u, {old} + {low} < {old})", False)).text
            old_high = self.slot("u32")
            self.emit(f"if ({high} != 0u) {{ {old_high} = atomicAdd(&{array.name}[{at} + 1u], {high}); }}"
                      f" else {{ {old_high} = atomicLoad(&{array.name}[{at} + 1u]); }}")  # fmt: skip
        else:
            old_high = self.temporary(unsigned(f"{ATOMIC[name]}(&{array.name}[{at} + 1u], {high})", False)).text
        return Value(self.numbers.whole(old, old_high, kind), kind, False)

    # ----------------------------------------------------------------------------------------------------------- calls

    def of_Call(self, node):
        if node.keywords:
            self.refuse(node, "a kernel for WebGPU passes arguments by position")
        name = self.cuda_name(node.func)
        if name in (("shared", "array"), ("local", "array")):
            return self.new_array(name[0], node)
        arguments = self.values(node.args)
        if name:
            return self.cuda_call(name, arguments, node)
        if self.calls(node, "min", "max"):
            if len(arguments) < 2 or self.numbers.common(*arguments) == "literal":
                self.refuse(node, "min and max take two numbers or more, not all of them literals")
            big = self.numbers.common(*arguments) in BIG
            return self.numbers.extreme(node.func.id, list(map(self.short, arguments)) if big else arguments)
        if self.calls(node, "len") and isinstance(arguments[0], Array):
            return self.numbers.cast(arguments[0].sizes[0], "i64")
        if self.calls(node, "int", "bool", "abs"):
            (value,) = arguments
            if node.func.id == "abs":
                if value.literal is not None:
                    return literal(abs(value.literal))
                value = self.short(value)
                negative = self.numbers.operate("sub", literal(0), value)
                return self.numbers.extreme("max", [value, negative]) if value.type[0] == "i" else value
            return self.numbers.cast(value, "bool" if node.func.id == "bool" else "i64")
        called = self.value(node.func)
        if isinstance(called, type) and issubclass(called, np.generic):
            if called.__name__ not in WGSL:
                self.refuse(node, f"WebGPU has no {called.__name__}")
            return self.numbers.cast(arguments[0], WGSL[called.__name__])
        if isinstance(called, type) and hasattr(called, "_fields"):
            if len(arguments) != len(called._fields):
                self.refuse(node, f"{called.__name__} has {len(called._fields)} fields")
            return self.fixed(self.whole(Several(tuple(arguments), called._fields)))
        if is_device_function(called):
            return self.device_call(called.py_func, arguments)
        return self.refuse(node, "a kernel for WebGPU calls device functions, types of integers, min, max and cuda's")

    def new_array(self, where, node):
        """An array of the block or of the thread."""
        shape, of = (self.value(argument) for argument in node.args)
        shape = shape.items if isinstance(shape, Several) else (shape,)
        kind = WGSL.get(np.dtype(getattr(of, "name", of)).name)
        if kind in (None, "bool") or any(each.literal is None for each in shape):
            self.refuse(node, "a size is a constant, and elements are integers of 32 or 64 bits")
        size, sizes = 1, tuple(self.numbers.known(each.literal, "u32") for each in shape)
        for each in shape:
            size *= each.literal
        if where == "local":
            name = self.slot(f"array<{self.numbers.name(kind)}, {size}>")
            return Array(name, kind, sizes, "local", words=size)
        shared = self.module.shared
        if size == 0:  # all of these are the same memory, of any type
            name, words = shared.setdefault(None, ("shared_words", self.module.dynamic_words))
            return Array(name, kind, (unsigned(f"{words // (2 if kind in BIG else 1)}u"),), "shared")
        key = self.function, node.lineno, node.col_offset
        words = size * (2 if kind in BIG else 1)
        name, _ = shared.setdefault(key, (f"shared_{len(shared)}", words))
        return Array(name, kind, sizes, "shared")

    def device_call(self, function, arguments):
        numbers, module = self.numbers, self.module

        arguments = list(map(self.whole, arguments))
        if any(not isinstance(each, (Value, Array, Several)) for each in arguments):
            raise NotInWgsl(f"{function.__name__} is called with what is no number and no array")
        waits = module.function_waits(function)
        if waits:
            self.come_together()
        masked = bool(waits and self.guard)
        made = module.function(function, arguments, self.flow, masked)
        texts = ["lid", "block", *([self.guard] if masked else [])]

        def give(value):
            if isinstance(value, Several):
                for item in value.items:
                    give(item)
            elif isinstance(value, Array):
                if value.where == "local":
                    texts.append(f"&{value.name}")
                if value.offset is not None:
                    texts.extend((value.offset.text, value.sizes[0].text))
            elif not isinstance(value.literal, bool):
                texts.append(self.temporary(value).text if masked else value.text)

        give(Several(tuple(arguments)))
        own = [text for text in texts if text.startswith("&")]
        if len(own) > len(set(own)):
            raise NotInWgsl(f"{function.__name__} is given an array of the thread twice: WGSL has no aliases")
        text = f"{made.name}({', '.join(texts)})"
        uniform = not made.varies and self.flow and not self.guard
        if not made.returns:
            (self.line if waits else self.emit)(f"{text};")
            return Several(())
        kind = numbers.name(made.returns[0]) if len(made.returns) == 1 else f"Of_{made.name}"
        if masked:
            name = self.slot(kind)
            self.line(f"{name} = {text};")
        else:
            name = self.temporary(Value(text, made.returns[0], uniform), kind).text
        if len(made.returns) == 1:
            return Value(name, made.returns[0], uniform)
        items = (Value(f"{name}.r{k}", kind, uniform) for k, kind in enumerate(made.returns))
        return Several(tuple(items), made.fields)

    def come_together(self):
        """Parted, unless all threads of the block run the next line; what is translated again need not be right."""
        if not self.flow and not self.guard and not (self.masked and self.again):
            raise Parted

    def barrier(self, text):
        """A line at which threads wait for each other."""
        self.come_together()
        self.line(text)

    def cuda_call(self, name, arguments, node):
        numbers, module = self.numbers, self.module
        if name in (("grid",), ("gridsize",)):
            if arguments[0].literal != 1:
                self.refuse(node, "a launch has one dimension on WebGPU")
            threads = Value(f"{module.threads}u", "u32")
            many = unsigned("block" if name == ("grid",) else module.blocks)
            if numbers.wide:
                many = numbers.operate("mul", numbers.cast(many, "i64"), threads)
            else:
                many = Value(f"product({many.text}, {threads.text})", "i64")
            return many if name == ("gridsize",) else numbers.operate("add", many, unsigned("lid", False))
        if name == ("syncthreads",):
            self.barrier(module.barrier)
            return Several(())
        if name[0] in BLOCK_VOTES:
            value = self.temporary(numbers.cast(arguments[0], "bool")).text
            wanted = f"!{value}" if name[0] == "syncthreads_and" else value
            if self.guard:
                wanted = f"{self.guard} && {wanted}"
            count = self.slot("u32")
            self.barrier(f"{count} = count_of_block(lid, {wanted});")
            text = {"syncthreads_count": count, "syncthreads_or": f"select(0u, 1u, {count} != 0u)"}
            return unsigned(text.get(name[0], f"select(0u, 1u, {count} == 0u)"))
        if name[0] in VOTES or name[0] == "syncwarp":
            return self.warp_call(name[0], arguments)
        if name[0] in FENCES:
            return Several(())
        if name == ("lanemask_lt",):
            return unsigned("((1u << (lid & 31u)) - 1u)", False)
        if name[0] == "atomic" and len(arguments) > 2:
            return self.atomic(name[1], *arguments)
        if name == ("selp",):
            (a, b), kind, uniform = numbers.typed(*arguments[1:])
            test = numbers.cast(arguments[0], "bool")
            if test.constant is not None:
                return numbers.cast(arguments[1 if test.constant else 2], kind)
            return Value(f"select({b}, {a}, {test.text})", kind, uniform and test.uniform)
        if name[0] in ("popc", "clz", "ffs"):
            kind = numbers.common(arguments[0])
            return self.bit_count(name[0], numbers.cast(arguments[0], "i64" if kind == "literal" else kind))
        return self.refuse(node, f"WebGPU has no cuda.{'.'.join(name)}")

    def bit_count(self, name, value):
        """popc, clz or ffs of a number."""
        uniform = value.uniform
        if value.type not in BIG:
            word = self.numbers.cast(value, "u32").text
            found = {"popc": f"countOneBits({word})", "clz": f"countLeadingZeros({word})",
                     "ffs": f"(firstTrailingBit({word}) + 1u)"}[name]  # fmt: skip
            return unsigned(found, uniform)
        low, high = self.numbers.words(self.temporary(value))
        found = {
            "popc": f"(countOneBits({low}) + countOneBits({high}))",
            "clz": f"select(countLeadingZeros({high}), 32u + countLeadingZeros({low}), {high} == 0u)",
            "ffs": f"select(firstTrailingBit({low}) + 1u, "
            f"select(33u + firstTrailingBit({high}), 0u, {high} == 0u), {low} == 0u)",
        }[name]
        return unsigned(found, uniform)

    def warp_call(self, name, arguments):
        """What the lanes of a warp do together."""
        numbers = self.numbers
        if not self.masked:
            raise Parted
        self.come_together()
        if name == "syncwarp":
            self.barrier(self.module.barrier)
            return Several(())
        if name in ("any_sync", "all_sync", "ballot_sync"):
            value = numbers.cast(arguments[1], "bool").text
            value = f"!{value}" if name == "all_sync" else value
            votes = self.together(f"ballot(lid, {self.guard} && {value})" if self.guard else f"ballot(lid, {value})")
            if name == "ballot_sync":
                return unsigned(votes, False)
            return Value(f"({votes} {'==' if name == 'all_sync' else '!='} 0u)", "bool", False)
        value = self.temporary(arguments[1])
        by = self.temporary(numbers.cast(arguments[2], "u32"))
        by = numbers.cast(by, "u32").text
        lane = {"shfl_sync": f"({by} & 31u)", "shfl_up_sync": f"((lid & 31u) - {by})",
                "shfl_down_sync": f"((lid & 31u) + {by})", "shfl_xor_sync": f"((lid & 31u) ^ {by})"}[name]  # fmt: skip
        kind = "i64" if value.type == "literal" else value.type
        if kind in BIG:
            words = [
                self.together(f"shuffled(lid, {word}, {lane})") for word in numbers.words(numbers.cast(value, kind))
            ]
            return Value(numbers.whole(*words, kind), kind, False)
        word = numbers.cast(value, "u32").text
        return numbers.cast(unsigned(self.together(f"shuffled(lid, {word}, {lane})"), False), kind)

    def together(self, text):
        """The name of a word that all lanes compute together."""
        if not self.guard:
            return self.temporary(unsigned(text, False)).text
        name = self.slot("u32")
        self.line(f"{name} = {text};")
        return name
