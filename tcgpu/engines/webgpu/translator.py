"""From a kernel's syntax tree to WGSL, the shader language of WebGPU: `translated(kernel, signature, ...)`.

Types come from the signature and from NumPy's rule for integers (`engines.integers`). A variable of Python may have
several types one after the other, and is a variable of WGSL for each; where two meet, after an `if` or around a loop,
both get the wider one, and the translation is repeated until that changes nothing.

A function of WGSL cannot be given a buffer: so a device function is translated once for each combination of arrays and
types that it is called with.

A barrier must be reached by all threads of a block, and a browser demands to see that in the text ("uniform control
flow"). Where a condition around a barrier is the same in all threads, but that cannot be seen, the threads take that of
thread 0, which changes nothing. Lanes of a warp may part, as warps of a block do. Where the GPU has no groups of 32
threads that follow each other, or where threads part before a barrier, the kernel is translated with `masks`: the whole
block takes every path that has a barrier in it, and a thread whose mask is false does nothing there.
"""

import ast
import inspect
import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from tcgpu.engines.integers import OPERATIONS
from tcgpu.engines.kernel_language import parameters, refuse_recursion, source_tree
from tcgpu.engines.webgpu import prelude
from tcgpu.engines.webgpu.device import WIDTH
from tcgpu.engines.webgpu.expressions import Expressions, Parted
from tcgpu.engines.webgpu.numbers import (
    BIG,
    WGSL,
    Array,
    NotInWgsl,
    Numbers,
    Several,
    Value,
    bare,
    literal,
    unsigned,
)  # fmt: skip
from tcgpu.errors import KernelError

# names that a variable must not take: WGSL's own, and those of functions that translated text calls
RESERVED = frozenset(
    "alias array atomic bitcast bool break case const continue continuing default diagnostic discard else enable f16 "
    "f32 false fn for function i32 i64 if let loop override private ptr read read_write return storage struct switch "
    "true u32 u64 uniform var vec2 vec3 vec4 while workgroup write active asm async auto become cast catch class "
    "common compile concept do enum explicit export extern external filter final friend from get global goto group "
    "handle impl implements import inline instance interface layout line lowp match mediump meta mod module move mut "
    "mutable namespace new nil null of operator package partition pass patch point precise precision private "
    "protected public quote ref regardless register require resource restrict self set shared signed sizeof smooth "
    "static std super target template this throw trait try type typedef typeid typename typeof union unless unsigned "
    "use using varying virtual volatile where with yield all any min max select abs sign clamp step length distance "
    "lid block params main same ballot shuffled any_of_block count_of_block lanes told anyone product mask "
    "result".split()
)


class Text(NamedTuple):
    """A translated kernel. The words of `params`: the size of each array, the value of each number, then the blocks."""

    wgsl: str
    arrays: tuple  # (the number of the argument, whether it is written) for each buffer, in the order of bindings
    sizes: tuple  # of each argument, how many words of `params` it takes


def translated(kernel, signature, threads, shared, features):
    """The Text of a kernel for a signature, threads a block, bytes of dynamic shared memory, and a device's features.

    KernelError, with the line, where it uses what WebGPU has not.
    """
    refuse_recursion(kernel.py_func)
    subgroups = "subgroups-of-32" in features
    try:
        return Module(kernel, signature, threads, shared, features, masks=False).text
    except Parted as parted:
        if not parted.by_warps and subgroups:
            features = features - {"subgroups-of-32"}
        return Module(kernel, signature, threads, shared, features, masks=True).text


@dataclass
class Made:
    """A device function, translated for some arguments."""

    name: str
    returns: tuple | None = None  # types
    varies: bool = False  # whether threads may get different results for the same arguments


class Module:
    """The translation of one kernel, with all device functions that it calls."""

    def __init__(self, kernel, signature, threads, shared, features, masks):
        self.kernel, self.threads, self.masks = kernel, threads, masks
        self.subgroups = "subgroups-of-32" in features
        self.wide = "int64" in features
        self.numbers = Numbers(self.wide)
        self.atomics_64 = "int64-atomics" in features
        self.ordered = "ordered-barriers" in features
        self.dynamic_words = max(1, -(-shared // 4))
        self.atomic, self.written, self.read = set(), set(), set()  # names of arrays
        self.waiting = {}  # device function -> whether threads wait in it
        known = -1
        while known != self._noted():  # until no new array is written, or used atomically
            known = self._noted()
            self.made, self.functions, self.shared = {}, {}, {}
            self.text = self._translate(parameters(signature))

    def _noted(self):
        return len(self.atomic) + len(self.written) + len(self.read)

    def _translate(self, declared):
        names = [safe(name) for name in self.kernel.py_func.__code__.co_varnames[: len(declared)]]
        self.taken = RESERVED | set(names)
        given, sizes, bindings, lets, words = [], [], [], [], 0
        for number, (name, of) in enumerate(zip(names, declared, strict=True)):
            kind = WGSL.get(of.dtype.name)
            if kind is None or of.dimensions and kind == "bool":
                raise KernelError(
                    f"kernel {self.kernel.__name__}: {name} is of {of.dtype.name}, and WebGPU has integers of 32 "
                    f"{'and 64 ' if self.wide else ''}bits"
                )
            take = of.dimensions or (2 if kind in BIG else 1)
            texts = [self.param(words + k) for k in range(take)]
            if of.dimensions:
                given.append(Array(name, kind, tuple(map(unsigned, texts))))
                bindings.append((number, name, kind))
            else:
                value = (
                    self.numbers.whole(*texts, kind)
                    if kind in BIG
                    else self.numbers.cast(unsigned(texts[0]), kind).text
                )
                lets.append(f"  let {name} = {value};\n")
                given.append(Value(name, kind))
            words += take
            sizes.append(take)
        self.blocks = self.param(words)
        entry = Function(self, self.kernel.py_func, given)
        body = entry.translate()
        heads = [f"@group(0) @binding(0) var<uniform> params: array<vec4<u32>, {words // 4 + 1}>;"]
        for k, (_, name, kind) in enumerate(bindings):
            access = "read_write" if name in self.written else "read"
            heads.append(
                f"@group(0) @binding({k + 1}) var<storage, {access}> {name}: array<{self.stored(name, kind)}>;"
            )
        for name, size in self.shared.values():
            kind = "atomic<u32>" if name in self.atomic else "u32"
            heads.append(f"var<workgroup> {name}: array<{kind}, {size}>;")
        main = (
            f"{comment(self.kernel.py_func)}"
            f"@compute @workgroup_size({self.threads})\n"
            "fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {\n"
            f"  let lid = local_id.x;\n  let block = group_id.y * {WIDTH}u + group_id.x;\n"
            f"  if (block >= {self.blocks}) {{ return; }}\n{''.join(lets)}{body}}}"
        )
        own = [main, *self.reached(main)]
        text = "\n".join([*heads, "", *own, *self._helpers("\n".join(own))])
        arrays = tuple((number, name in self.written) for number, name, _ in bindings)
        return Text(text, arrays, tuple(sizes))

    def _helpers(self, text):
        """The parts of the prelude that a text uses."""
        if re.search(r"\b(div|mod)_[iu]32\(", text):
            yield prelude.DIVISIONS
        if not self.wide and "vec2<u32>" in text:
            yield prelude.PAIRS
        if self.wide and re.search(r"\b(div|mod)_[iu]64\(", text):
            yield prelude.WIDE_DIVISIONS
        if re.search(r"\bsame(_word)?\(", text):
            yield prelude.SAME
        warps = re.search(r"\b(ballot|shuffled)\(", text)
        if re.search(r"\b(any|count)_of_block\(", text) or warps and not self.subgroups:
            yield prelude.VOTES.replace("THREADS", str(self.threads))
        if warps:
            yield prelude.SUBGROUPS if self.subgroups else prelude.WARPS.replace("THREADS", str(self.threads))

    def reached(self, text):
        """The device functions that a text calls, directly or not: others were translated for what did not last."""
        reached, left = [], [text]
        while left:
            for name in set(re.findall(r"\w+", left.pop())) & self.functions.keys() - set(reached):
                reached.append(name)
                left.append(self.functions[name])
        return [text for name, text in self.functions.items() if name in reached]

    def function_waits(self, function):
        """Whether threads wait for each other in a device function."""
        if function not in self.waiting:
            self.waiting[function] = Function(self, function, ()).waits(source_tree(function).body[0].body)
        return self.waiting[function]

    def function(self, function, arguments, flow):
        """The Made device function for these arguments; flow: whether all threads of a block call it."""
        key = function, tuple(map(specialisation, arguments)), flow
        made = self.made.get(key)
        if made is None:
            of_name = sum(other is function for other, *_ in self.made) + 1
            made = self.made[key] = Made(f"{function.__name__}_{of_name}")
            inner = Function(self, function, arguments, made)
            body = inner.translate()
            returns = ""
            if made.returns:
                returns = f" -> {inner.returned_type()}"
            head = ", ".join(["lid: u32", "block: u32", *(["mask: bool"] if inner.masked else []), *inner.passed])
            text = f"{comment(function)}fn {made.name}({head}){returns} {{\n{body}}}\n"
            if made.returns and len(made.returns) > 1:
                members = ", ".join(f"r{k}: {self.numbers.name(kind)}" for k, kind in enumerate(made.returns))
                text = f"struct Of_{made.name} {{ {members} }}\n{text}"
            same = (name for name, other in self.functions.items() if other == text.replace(made.name, name))
            made.name = next(same, made.name)
            self.functions.setdefault(made.name, text)
        return made

    def param(self, word):
        return f"params[{word // 4}].{'xyzw'[word % 4]}"

    @property
    def barrier(self):
        """A barrier; it orders buffers, too, by which threads of a block may tell each other something.

        For a whole device, which takes long; on a device with `ordered-barriers`, atomic elements do without.
        """
        told = (self.read & self.written) - (self.atomic if self.ordered else set())
        return "workgroupBarrier(); storageBarrier();" if told else "workgroupBarrier();"

    def in_words(self, array):
        """Whether an array is stored as words of 32 bits, in WGSL: two for an element of 64 bits."""
        if array.where == "shared":
            return True
        return array.name in self.atomic and array.type in BIG and not self.atomics_64

    def stored(self, name, kind):
        """The type in WGSL of what a buffer holds."""
        if name not in self.atomic:
            return self.numbers.name(kind)
        return "atomic<u32>" if kind in BIG and not self.atomics_64 else f"atomic<{kind}>"


def comment(function):
    """The first sentence of a function's docstring as a comment."""
    text = (inspect.getdoc(function) or "").partition("\n\n")[0]
    return "".join(f"// {line}\n" for line in text.splitlines())


def safe(name):
    """A name that WGSL allows."""
    name = "ignored" if name == "_" else name.replace("__", "_x")
    return f"{name}_" if name in RESERVED else name


def specialisation(value):
    """What a device function is translated for, of one argument."""
    if isinstance(value, Several):
        return tuple(map(specialisation, value.items)), value.fields
    if isinstance(value, Array):
        return value.name, value.type, value.where, len(value.sizes), value.offset is not None
    return value.literal if isinstance(value.literal, bool) else (value.type, value.uniform)


def exits(node, loops=0):
    """Whether a statement may leave the loop, or the function, that it is in; loops: how many are inside of it."""
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, (ast.Break, ast.Continue)):
        return loops == 0
    inner = loops + isinstance(node, (ast.For, ast.While))
    return any(exits(each, inner) for each in ast.iter_child_nodes(node))


class Loop:
    """A loop that is being translated."""

    def __init__(self, waits, varies, masks=(), depth=0):
        """waits: whether a barrier is in it. varies: whether threads leave it in different rounds. masks: with masks,
        that of the threads in the loop; depth: how many masks were there before it."""
        self.waits, self.varies, self.masks, self.depth = waits, varies, masks, depth
        self.breaks, self.nexts = [], []  # the variables at each `break`, at each `continue`


class Function(Expressions):
    """The translation of a kernel or a device function for some arguments."""

    def __init__(self, module, function, given, made=None):
        super().__init__(function)
        self.module, self.numbers, self.function, self.given, self.made = module, module.numbers, function, given, made
        self.definition = source_tree(function).body[0]
        self.masked = module.masks and self.waits(self.definition.body)
        self.varying = set()  # variables that differ between threads, and loops that these leave in different rounds
        self.widened = {}  # (name, type) -> the type of the variable that keeps it

    def translate(self):
        """The text of the body."""
        stored = {node.id for node in ast.walk(self.definition)
                  if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip
        self.again = True
        while self.again:
            self.again, self.lines, self.depth, self.count = False, [], 1, 0
            self.env, self.kinds, self.declared, self.passed, self.loops = {}, {}, {}, [], []
            self.flow, self.guard, self.masks = True, None, []
            for arg, value in zip(self.definition.args.args, self.given, strict=True):
                self.env[arg.arg] = inside = self.parameter(arg.arg, value, arg.arg in stored)
                if arg.arg in stored and isinstance(inside, Value) and not isinstance(value.literal, bool):
                    self.assign_name(arg.arg, inside)  # WGSL cannot assign to a parameter
            if self.masked:
                self.guard = self.slot("bool")
                self.masks = [self.guard]
                self.line(f"{self.guard} = {'mask' if self.made else 'true'};")
            falls_through = self.block(self.definition.body)
        if self.made and self.made.returns:
            if self.masked:
                self.declared["result"] = self.returned_type()
                self.line("return result;")
            elif falls_through:
                self.line(f"return {self.returned_type()}();")
        head = list(self.declarations())
        return "\n".join([*head, *self.lines, ""])

    def declarations(self):
        """The lines that declare variables; those whose first line assigns them are declared there."""
        for name, kind in self.declared.items():
            first = next((k for k, line in enumerate(self.lines) if re.search(rf"\b{name}\b", line)), None)
            if first is not None and self.lines[first].startswith(f"  {name} = "):
                self.lines[first] = f"  var {self.lines[first][2:]}"
            else:
                yield f"  var {name}: {kind};"

    def returned_type(self):
        """What a device function returns, in WGSL."""
        kinds = self.made.returns
        return self.numbers.name(kinds[0]) if len(kinds) == 1 else f"Of_{self.made.name}"

    def parameter(self, name, value, stored=False):
        """The argument inside the function."""
        if isinstance(value, Several):
            items = tuple(self.parameter(f"{name}_{k}", item) for k, item in enumerate(value.items))
            return Several(items, value.fields)
        if self.made is None:
            return value
        text = self.variable(name) + ("_given" if stored else "")
        if isinstance(value, Array):
            if value.where == "local":
                self.passed.append(f"{text}: ptr<function, array<{self.numbers.name(value.type)}, {value.words}>>")
                return replace(value, name=f"(*{text})")
            if value.offset is None:
                return value
            self.passed += [f"{text}_from: u32", f"{text}_size: u32"]
            return replace(value, offset=unsigned(f"{text}_from", False), sizes=(unsigned(f"{text}_size", False),))
        if isinstance(value.literal, bool):
            return value
        self.passed.append(f"{text}: {self.numbers.name(value.type)}")
        return Value(text, value.type, value.uniform)

    # ------------------------------------------------------------------------------------------------------- variables

    def variable(self, name):
        """The name of a variable in WGSL."""
        name = safe(name)
        return f"{name}_" if name in self.module.taken or re.search(r"^t\d+$|_\d+$", name) else name

    def assign_name(self, name, value):
        if not isinstance(value, Value):
            self.env[name] = self.fixed(value)
            return
        if isinstance(value.literal, bool):
            value = Value(self.numbers.constant(value.literal, "bool"), "bool")
        kind = "i64" if value.type == "literal" else value.type
        while (name, kind) in self.widened:
            kind = self.widened[name, kind]
        known = self.kinds.setdefault(name, [])
        if kind not in known:
            known.append(kind)
        text = self.variable(name) + (f"_{kind}" if kind != known[0] else "")
        self.declared[text] = self.numbers.name(kind)
        if not (value.uniform and self.flow):
            self.vary(text)
        self.env[name] = Value(text, kind, text not in self.varying)
        self.emit(f"{text} = {bare(self.numbers.cast(value, kind).text)};")

    def vary(self, what):
        """Note that a variable, or a loop, is not the same for all threads."""
        if what not in self.varying:
            self.varying.add(what)
            self.again = True

    def meet(self, *paths):
        """The variables where paths of the program meet: each has one type there, or it is of no use afterwards."""
        joined = {}
        for name in dict.fromkeys(name for path in paths for name in path):
            values = [path[name] for path in paths if name in path]
            first = values[0]
            if all(each == first for each in values):
                joined[name] = first
            elif not all(isinstance(each, Value) for each in values):
                joined[name] = None
            elif len({each.text for each in values}) == 1:
                joined[name] = replace(first, uniform=all(each.uniform for each in values))
            elif any(each.text not in self.declared for each in values):
                joined[name] = None  # a bool that is known here, or a parameter
            else:
                kind = self.numbers.common(*values)
                for each in values:
                    if each.type != kind:
                        self.widened[name, each.type] = kind
                        self.again = True
                joined[name] = next((each for each in values if each.type == kind), first)
        return joined

    # ------------------------------------------------------------------------------------------------------ statements

    def block(self, body):
        """Translate statements; returns whether the end is reached."""
        before = None
        for statement in body:
            handler = getattr(self, f"do_{type(statement).__name__}", None)
            if handler is None:
                self.refuse(statement, "a kernel for WebGPU has no such statement")
            self.behind_barrier = isinstance(before, ast.Expr) and self.calls_barrier(before.value)
            whole = isinstance(statement, (ast.If, ast.While, ast.For))
            try:
                if self.guard and whole and not (self.waits([statement]) or exits(statement)):
                    falls_through = self.unguarded(lambda each=handler, at=statement: each(at))
                else:
                    falls_through = handler(statement)
            except NotInWgsl as error:
                self.refuse(statement, str(error))
            if falls_through is False:
                return False
            before = statement
        return True

    def calls_barrier(self, node):
        return isinstance(node, ast.Call) and self.cuda_name(node.func) == ("syncthreads",)

    def do_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return
        value = self.value(node.value)
        unused = f"let {value.text} = " if isinstance(value, Value) else "\n"
        if self.lines and self.lines[-1].strip().startswith(unused):
            self.lines[-1] = self.lines[-1].replace(unused, "", 1)

    def do_Pass(self, node):
        pass

    def do_Assign(self, node):
        value = self.value(node.value)
        if self.behind_barrier and self.flow and not self.guard and self.is_one_element(node.value, value):
            value = self.temporary(Value(f"same_word(lid, {value.text})", "u32"))
        if not self.independent(node.targets, value):
            value = self.fixed(value)
        for target in node.targets:
            self.assign(target, value)

    def is_one_element(self, node, value):
        """Whether all threads of a block read the same element, of u32: behind a barrier, a block's next task."""
        if not isinstance(node, ast.Subscript) or getattr(value, "uniform", True) or value.type != "u32":
            return False
        index = self.env.get(node.slice.id) if isinstance(node.slice, ast.Name) else literal(self.literal(node.slice))
        return isinstance(index, Value) and index.uniform and (index.text or index.literal is not None)

    def independent(self, targets, value):
        """Whether targets may be assigned one after the other: no assignment changes a value of a later one."""
        if len(targets) == 1 and not isinstance(targets[0], ast.Tuple):
            return True
        if len(targets) > 1 or not all(isinstance(each, ast.Name) for each in targets[0].elts):
            return False
        names = [self.variable(each.id) for each in targets[0].elts]
        texts = [getattr(each, "text", "") for each in getattr(value, "items", ())]
        pairs = ((name, text) for k, name in enumerate(names) for text in texts[k + 1 :])
        return not any(re.search(rf"\b{name}(_[iu]\d\d|_bool)?\b", text) for name, text in pairs)

    def do_AnnAssign(self, node):
        if node.value is not None:
            self.assign(node.target, self.value(node.value))

    def assign(self, target, value):
        if isinstance(target, ast.Tuple):
            if not isinstance(value, Several) or len(value.items) != len(target.elts):
                self.refuse(target, "as many values as names are needed")
            for each, item in zip(target.elts, value.items, strict=True):
                self.assign(each, item)
        elif isinstance(target, ast.Subscript):
            array, index = self.value(target.value), self.value(target.slice)
            self.store(array, index, value)
        elif isinstance(target, ast.Name):
            self.assign_name(target.id, value)
        else:
            self.refuse(target, "a kernel for WebGPU assigns to variables and elements")

    def do_AugAssign(self, node):
        name = OPERATIONS.get(type(node.op)) or self.refuse(node, "WebGPU has no such operation of integers")
        if isinstance(node.target, ast.Subscript):
            array, index = self.values([node.target.value, node.target.slice])
            index = self.fixed(index)
            (right,) = self.values([node.value])
            self.store(array, index, self.numbers.operate(name, self.load(array, index), right))
            return
        left, right = self.values([node.target, node.value])
        self.assign_name(node.target.id, self.numbers.operate(name, left, right))

    def do_Return(self, node):
        value = self.value(node.value) if node.value else Several(())
        items = value.items if isinstance(value, Several) else (value,)
        if any(not isinstance(item, Value) for item in items):
            self.refuse(node, "a device function for WebGPU returns numbers")
        if self.made and items:
            self.returns(items)
        elif not self.guard:
            self.line("return;")
        if self.guard:
            self.clear([*self.masks, *(mask for loop in self.loops for mask in loop.masks)])
        elif not self.flow:
            for loop in self.loops:
                self.leave(loop)
            self.vary("rest")
        return False

    def returns(self, items):
        """Return these values from a device function."""
        kinds = tuple("i64" if item.type == "literal" else item.type for item in items)
        if self.made.returns not in (None, kinds):
            pairs = zip(self.made.returns, kinds, strict=True)
            kinds = tuple(self.numbers.common(Value("", a), Value("", b)) for a, b in pairs)
            self.again = self.again or kinds != self.made.returns
        self.made.returns = kinds
        self.made.varies = self.made.varies or not self.flow or not all(item.uniform for item in items)
        texts = [self.numbers.cast(item, kind).text for item, kind in zip(items, kinds, strict=True)]
        text = texts[0] if len(texts) == 1 else f"{self.returned_type()}({', '.join(texts)})"
        self.emit(f"result = {text};" if self.guard else f"return {text};")

    def clear(self, masks):
        """With masks: the threads of the innermost one leave all of these."""
        inner = self.masks[-1]
        texts = [f"{mask} = false;" for mask in dict.fromkeys(masks) if mask != inner]
        self.line(f"if ({inner}) {{ {' '.join([*texts, f'{inner} = false;'])} }}")

    def leave(self, loop):
        """Threads leave a loop while others go on."""
        if not loop.varies:
            loop.varies = True

    def condition(self, test, together):
        """A condition as a bool; `together` if all threads of the block have to take the same path."""
        value = self.value(test)
        if isinstance(value, Value) and value.literal is not None:
            return literal(bool(value.literal))
        value = self.numbers.cast(value, "bool")
        return self.agreed(value) if together else value

    def agreed(self, value):
        """The condition, which is the same in all threads, as one that is seen to be."""
        if value.uniform:
            return value
        if not self.flow:
            raise Parted
        return self.temporary(Value(f"same(lid, {value.text})", "bool"))

    def do_If(self, node):
        if self.guard:
            return self.masked_if(node)
        together = self.waits([node]) or self.loops and self.loops[-1].waits and exits(node)
        value = self.condition(node.test, together)
        if value.literal is not None:
            return self.block(node.body if value.literal else node.orelse)
        flow, before, paths = self.flow, self.env, []
        self.flow = flow and value.uniform
        self.line(f"if ({bare(value.text)}) {{")
        for k, body in enumerate((node.body, node.orelse)):
            if k and body:
                self.line("} else {")
            self.env = dict(before)
            self.depth += 1
            if self.block(body):
                paths.append(self.env)
            self.depth -= 1
        self.line("}")
        self.env = self.meet(*paths) if paths else before
        self.flow = flow and not (self.loops and self.loops[-1].varies) and "rest" not in self.varying
        return bool(paths)

    def masked_if(self, node):
        """An `if` that has a barrier, or an exit, in it: all threads go through both sides."""
        value = self.condition(node.test, False)
        if value.literal is not None:
            return self.block(node.body if value.literal else node.orelse)
        outer, before, paths = self.guard, self.env, []
        yes, no = self.slot("bool"), self.slot("bool")
        self.line(f"{yes} = {outer} && {value.text};")
        self.line(f"{no} = {outer} && !{yes};")
        for mask, body in ((yes, node.body), (no, node.orelse)):
            self.env = dict(before)
            self.masks.append(mask)
            self.guard = mask
            if self.block(body):
                paths.append(self.env)
            self.masks.pop()
        self.guard = outer
        self.env = self.meet(*paths) if paths else before
        return bool(paths)

    def loop(self, node, head, step=""):
        """A loop. head: writes its condition, and returns it; step: what is done at the end of a round."""
        if node.orelse:
            self.refuse(node, "a loop has no else in a kernel for WebGPU")
        key = ast.unparse(node) + str(node.lineno)
        loop = Loop(self.waits([node]), key in self.varying)
        self.loops.append(loop)
        flow, before = self.flow, dict(self.env)
        self.flow = flow and not loop.varies
        if self.guard:
            after = self.masked_rounds(node, loop, head, step)
        else:
            place = len(self.lines)
            self.line("loop {")
            self.depth += 1
            start = len(self.lines)
            value = head()
            if value.literal is None:
                if len(self.lines) == start:
                    head = f"for (; {bare(value.text)}; {step})" if step else f"while ({bare(value.text)})"
                    self.lines[place], step = self.lines[place].replace("loop", head), ""
                else:
                    self.line(f"if (!{value.text}) {{ break; }}")
            if not value.uniform:
                loop.varies = True
            self.flow = self.flow and not loop.varies
            after = dict(self.env) if value.literal is None else None
            self.enter(node)
            if self.block(node.body):
                loop.nexts.append(self.env)
            if step:
                self.line(f"continuing {{ {step}; }}")
            self.depth -= 1
            self.line("}")
        self.loops.pop()
        if loop.varies:
            self.vary(key)
        self.meet(before, *loop.nexts)
        self.flow = flow and "rest" not in self.varying
        paths = [path for path in (after, *loop.breaks) if path is not None]
        self.env = self.meet(*paths) if paths else before
        return bool(paths)

    def enter(self, node):
        """Begin a round: the variable of a `for`."""
        if isinstance(node, ast.For):
            self.assign(node.target, self.env[f"for {node.lineno} {node.col_offset}"])

    def masked_rounds(self, node, loop, head, step):
        """The rounds of a loop with a barrier, or an exit, in it: until the last thread has left it."""
        outer, inside, now = self.guard, self.slot("bool"), self.slot("bool")
        loop.masks, loop.depth = (inside,), len(self.masks)
        self.line(f"{inside} = {outer};")
        self.line("loop {")
        self.depth += 1
        self.line(f"{now} = {inside};")
        self.masks.append(now)
        self.guard = now
        value = head()
        if value.literal is None:
            self.line(f"{now} = {now} && {value.text};")
        self.line(f"{inside} = {now};")
        self.line(f"if (!any_of_block(lid, {inside})) {{ break; }}")
        after = dict(self.env) if value.literal is None else None
        self.enter(node)
        if self.block(node.body):
            loop.nexts.append(self.env)
        self.masks.pop()
        if step:
            self.line(f"if ({inside}) {{ {step}; }}")
        self.depth -= 1
        self.line("}")
        self.guard = outer
        return after

    def do_While(self, node):
        together = self.waits([node]) and not self.guard
        return self.loop(node, lambda: self.condition(node.test, together))

    def do_For(self, node):
        if isinstance(node.iter, ast.Tuple):
            if any(map(exits, node.body)):
                self.refuse(node.iter, "a loop over values is written out for WebGPU: no break, continue or return")
            for element in node.iter.elts:
                self.assign(node.target, self.value(element))
                self.block(node.body)
            return True
        if not self.calls(node.iter, "range"):
            self.refuse(node.iter, "a kernel for WebGPU loops over range(...) or a tuple of values")
        bounds = self.values(node.iter.args)
        start, stop, step = {1: [literal(0), *bounds, literal(1)], 2: [*bounds, literal(1)], 3: bounds}[len(bounds)]
        kind = self.numbers.common(start, stop, step)
        kind = "i64" if kind == "literal" else kind
        stop, step = (self.fixed(self.numbers.cast(each, kind)) for each in (stop, step))
        hidden = f"for {node.lineno} {node.col_offset}"
        variable = f"{node.target.id}_next" if isinstance(node.target, ast.Name) else "next"
        self.assign_name(variable, self.numbers.cast(start, kind))
        self.env[hidden] = at = self.env[variable]
        if not step.uniform:
            self.vary(at.text)
        together = self.waits(node.body) and not self.guard
        sign = bounds[2].literal if len(bounds) == 3 else 1

        def head():
            if sign is None and kind[0] == "i":  # the sign of the step is not known here
                up, down = self.numbers.compare("<", at, stop).text, self.numbers.compare(">", at, stop).text
                positive = self.numbers.compare(">", step, literal(0)).text
                value = Value(f"select({down}, {up}, {positive})", "bool", at.uniform and stop.uniform and step.uniform)
            else:
                value = self.numbers.compare(">" if sign is not None and sign < 0 else "<", at, stop)
            return self.agreed(value) if together else value

        following = self.numbers.operate("add", at, step).text
        return self.loop(node, head, f"{at.text} = {following}")

    def do_Break(self, node):
        return self.jump("break;", self.loops[-1].breaks, self.loops[-1].masks)

    def do_Continue(self, node):
        return self.jump("continue;", self.loops[-1].nexts, ())

    def jump(self, text, paths, masks):
        loop = self.loops[-1]
        paths.append(dict(self.env))
        if self.guard:
            self.clear([*masks, *self.masks[loop.depth :]])
        else:
            if not self.flow:
                self.leave(loop)
            self.line(text)
        return False
