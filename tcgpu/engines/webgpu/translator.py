"""From a kernel's syntax tree to WGSL, the shader language of WebGPU: `translated(kernel, signature, ...)`.

Types come from the signature and from NumPy's rule for integers (`engines.integers`). A variable of Python may have
several types one after the other, and is a variable of WGSL for each; where two meet, after an `if` or around a loop,
each path ends with a cast to the wider one, and the translation is repeated until that changes nothing.

A function of WGSL cannot be given a buffer: so a device function is translated once for each combination of arrays and
types that it is called with.

A barrier must be reached by all threads of a block, and a browser demands to see that in the text ("uniform control
flow"). Where a condition around a barrier is the same in all threads, but that cannot be seen, the threads take that of
thread 0, which changes nothing. Where threads part before a barrier, or lanes of a warp wait for each other, the
kernel is translated with `masks`: the whole block takes every path that has a barrier, or a vote of a warp, in it, and
a thread whose mask is false does nothing there. Lanes that parted come together again for sure only where the whole
block does: WGSL and Vulkan promise no more, and a GPU whose groups are warps was seen to need it. What is the same for
all threads of a block, also for those whose mask is false, is done without a mask.
"""

import ast
import inspect
import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from tcgpu.engines.kernel_language import OPERATIONS, parameters, refuse_recursion, source_tree
from tcgpu.engines.webgpu import prelude
from tcgpu.engines.webgpu.device import WIDTH
from tcgpu.engines.webgpu.expressions import Expressions, Parted, Parts
from tcgpu.engines.webgpu.numbers import BIG, WGSL, Array, NotInWgsl, Numbers, Several, Value, bare, literal, unsigned
from tcgpu.errors import KernelError, TcgpuError

# names that a variable must not take: WGSL's own, and those of functions that translated text calls
RESERVED = frozenset(
    "NULL Self abstract active alias alignas alignof array as asm asm_fragment async atomic attribute auto await "
    "become bitcast block bool break case cast catch class co_await co_return co_yield coherent column_major common "
    "compile compile_fragment concept const const_assert const_cast consteval constexpr constinit continue "
    "continuing crate debugger decltype default delete demote demote_to_helper diagnostic discard do dynamic_cast "
    "else enable enum explicit export extends extern external f16 f32 fallthrough false filter final finally fn for "
    "friend from fxgroup get goto groupshared handle highp i32 i64 if impl implements import inline instance "
    "instanceof interface layout let loop lowp macro macro_rules match mediump meta mod module move mut mutable "
    "namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr of "
    "operator override package packoffset partition pass patch pixelfragment point precise precision premerge priv "
    "private protected ptr pub public quote read read_write readonly ref regardless register reinterpret_cast "
    "require requires resource restrict return sampler self set shared signed sizeof smooth snorm static "
    "static_assert static_cast std storage struct subroutine super switch target template texture this thread_local "
    "throw trait true try type typedef typeid typename typeof u32 u64 uniform union unless unorm unsafe unsized "
    "unsigned use using var varying vec2 vec3 vec4 virtual volatile wgsl where while with workgroup write writeonly "
    "yield abs all any clamp distance length max min select sign step group_id lid local_id main mask params result "
    "shared_words".split()
) | frozenset(prelude.helpers(False, False, 0))


FEATURES = frozenset({"int64", "int64-atomics", "subgroups-of-32", "ordered-barriers", "timestamps"})


class Text(NamedTuple):
    """A translated kernel. The words of `params`: the size of each array, the value of each number, then the blocks."""

    wgsl: str
    arrays: tuple  # (the number of the argument, whether it is written) for each buffer, in the order of bindings
    shared_bytes: int  # of a block


def translated(kernel, signature, threads, shared, features):
    """The Text of a kernel for a signature, threads a block, bytes of dynamic shared memory, and a device's features.

    KernelError, with the line, where it uses what WebGPU has not.
    """
    if unknown := sorted(features - FEATURES):
        raise KernelError(
            f"no feature {unknown[0]!r} of a device; there are {', '.join(sorted(FEATURES - {'timestamps'}))}"
        )
    refuse_recursion(kernel.py_func)
    try:
        return Module(kernel, signature, threads, shared, features, masks=False).text
    except Parted:
        return Module(kernel, signature, threads, shared, features, masks=True).text


@dataclass
class Made:
    """A device function, translated for some arguments."""

    name: str
    masked: bool = False  # whether it is given a mask
    returns: tuple | None = None  # types
    fields: tuple = ()  # of a NamedTuple that it returns
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
        self.waiting = {}  # device function -> what `waits` says of its body
        known = -1
        while known != self._noted():  # until no new array is written, or used atomically
            known = self._noted()
            self.made, self.functions, self.shared = {}, {}, {}
            self.text = self._translate(parameters(signature))

    def _noted(self):
        return len(self.atomic) + len(self.written) + len(self.read)

    def _translate(self, declared):
        names = []
        for name in map(safe, self.kernel.py_func.__code__.co_varnames[: len(declared)]):
            names.append(f"{name}_" if name in names or re.search(r"^t\d+$|_\d+$", name) else name)
        self.taken = RESERVED | set(names)
        given, bindings, lets, words = [], [], [], 0
        for number, (name, of) in enumerate(zip(names, declared, strict=True)):
            kind = WGSL.get(of.dtype.name)
            if kind is None or of.dimensions and kind == "bool":
                code = self.kernel.py_func.__code__
                raise KernelError(
                    f'File "{code.co_filename}", line {code.co_firstlineno}: kernel {self.kernel.__name__}: {name} is '
                    f"{'an array' if of.dimensions else 'a number'} of {of.dtype.name}; a kernel for WebGPU has those "
                    "of int32, uint32, int64 and uint64, and bools as numbers"
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
        own = [main, *self.reached(main, self.functions | prelude.helpers(self.wide, self.subgroups, self.threads))]
        if self.subgroups and any("any_of_block(" in each for each in own):
            own[0] = main = main.replace("{ return; }\n", f"{{ return; }}\n{prelude.FIRST_QUESTION}", 1)
        text = "\n".join([*heads, "", *own])
        arrays = tuple((number, name in self.written) for number, name, _ in bindings)
        shared = sum(int(size) for size in re.findall(r"^var<workgroup> \w+: array<\S+, (\d+)>;", text, re.MULTILINE))
        return Text(text, arrays, 4 * shared)

    def reached(self, text, functions):
        """What a text calls, directly or not: other device functions were translated for what did not last."""
        reached, left = set(), [text]
        while left:
            new = set(re.findall(r"\w+", left.pop())) & functions.keys() - reached
            reached |= new
            left += map(functions.get, new)
        return [text for name, text in functions.items() if name in reached]

    def function_waits(self, function):
        """What `waits` says of the body of a device function."""
        if function not in self.waiting:
            self.waiting[function] = Function(self, function, ()).waits(source_tree(function).body[0].body)
        return self.waiting[function]

    def function(self, function, arguments, flow, masked):
        """The Made device function for these arguments.

        flow: whether all threads of a block call it. masked: whether it is given the mask of those that it is for.
        """
        key = function, tuple(map(specialisation, arguments)), flow, masked
        made = self.made.get(key)
        if made is None:
            of_name = sum(other is function for other, *_ in self.made) + 1
            made = self.made[key] = Made(f"{safe(function.__name__)}_{of_name}", masked)
            inner = Function(self, function, arguments, made)
            body = inner.translate()
            returns = ""
            if made.returns:
                returns = f" -> {inner.returned_type()}"
            head = ", ".join(["lid: u32", "block: u32", *(["mask: bool"] if masked else []), *inner.passed])
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
        exchanged = (self.read & self.written) - (self.atomic if self.ordered else set())
        return "workgroupBarrier(); storageBarrier();" if exchanged else "workgroupBarrier();"

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
    name = "ignored" if name == "_" else re.sub("^__", "x", name).replace("__", "_x")
    return f"{name}_" if name in RESERVED else name


MASKED = r"( *)(if \(t\d+\) {)"  # how a block under a mask begins


def in_blocks(lines):
    """Lines with a block for those that follow each other under the same mask."""
    found, opened, closed = [], [], None
    for line in lines:
        one = re.fullmatch(rf"{MASKED} (.*) }}", line)
        parts = [f"{one[1]}{one[2]}", f"{one[1]}  {one[3]}", f"{one[1]}}}"] if one else [line]
        for part in parts:
            if part.lstrip().startswith("}") and opened:
                closed = opened.pop()
            elif closed and part == found[closed] and re.fullmatch(MASKED, part) and not changes(found[closed:]):
                found.pop()
                opened.append(closed)
                continue
            else:
                closed = None
            if part.endswith("{"):
                opened.append(len(found))
            found.append(part)
    return found


def in_memory(line):
    """Whether a line reads or writes memory, or calls a function that may."""
    return "[" in line.replace("params[", "") or "(lid, " in line


def changes(block):
    """Whether a block changes the mask that it is under."""
    mask = block[0].strip()[4:-3]
    return any(f"{mask} = " in line for line in block)


def specialisation(value):
    """What a device function is translated for, of one argument."""
    if isinstance(value, Several):
        return tuple(map(specialisation, value.items)), value.fields
    if isinstance(value, Array):
        shape = (value.words, *(size.text for size in value.sizes)) if value.where == "local" else len(value.sizes)
        return value.name if value.where != "local" else "", value.type, value.where, shape, value.offset is not None
    return value.literal if isinstance(value.literal, bool) else (value.type, value.uniform)


def returns(node):
    """Whether a statement may leave the function that it is in."""
    return any(isinstance(each, ast.Return) for each in ast.walk(node))


def exits(node, loops=0):
    """Whether a statement may leave the loop, or the function, that it is in; loops: how many are inside of it."""
    if isinstance(node, ast.Return):
        return True
    if isinstance(node, (ast.Break, ast.Continue)):
        return loops == 0
    inner = loops + isinstance(node, (ast.For, ast.While))
    return any(exits(each, inner) for each in ast.iter_child_nodes(node))


class Loop:
    def __init__(self, node, waits, varies, masked, depth):
        """waits: of whom threads wait in it. varies: whether threads leave it in different rounds. masked: whether the
        block goes on together until the last has left it; masks: then, that of the threads in the loop; depth: how
        many masks were there before it."""
        self.node, self.waits, self.varies, self.masked, self.depth = node, waits, varies, masked, depth
        self.key, self.masks = ast.unparse(node) + str(node.lineno), ()
        self.breaks, self.nexts = [], []  # the variables at each `break`, at each `continue`


class Function(Expressions):
    """The translation of a kernel or a device function for some arguments."""

    def __init__(self, module, function, given, made=None):
        super().__init__(function)
        self.module, self.numbers, self.function, self.given, self.made = module, module.numbers, function, given, made
        self.definition = source_tree(function).body[0]
        self.masked = module.masks and bool(self.waits(self.definition.body))
        self.texts = {}  # (name, ending) -> the name in WGSL
        self.varying = set()  # variables that differ between threads, and loops that these leave in different rounds
        self.wider = {}  # a variable -> types of it where paths meet: it is kept in these, too
        self.begins = {}  # a loop -> {a variable: its type at the begin of each round, None if it is of no use there}

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
                if arg.arg in stored and isinstance(inside, (Value, Several)):
                    self.assign_name(arg.arg, inside)  # WGSL cannot assign to a parameter
            given = self.made and self.made.masked
            *before, last = self.definition.body
            early = any(map(returns, before)) or returns(last) and not isinstance(last, ast.Return)
            if given or self.masked and early:
                self.guard = self.slot("bool")
                self.masks = [self.guard]
                self.line(f"{self.guard} = {'mask' if given else 'true'};")
            falls_through = self.block(self.definition.body)
        if self.made and self.made.returns:
            if self.guard:
                self.declared["result"] = self.returned_type()
                self.line("return result;")
            elif falls_through or not self.lines[-1].startswith("  return"):  # naga does not see that a loop has no end
                self.line(f"return {self.returned_type()}();")
        self.lines = in_blocks(self.lines)
        return "\n".join([*self.declarations(), *self.lines, ""])

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
        text = self.variable(name, "_given" if stored else "")
        if isinstance(value, Array):
            if value.where == "local":
                self.passed.append(f"{text}: ptr<function, array<{self.numbers.name(value.type)}, {value.words}>>")
                value = replace(value, name=f"(*{text})")
            if value.offset is None:
                return value
            first, size = self.variable(name, "_from"), self.variable(name, "_size")
            self.passed += [f"{first}: u32", f"{size}: u32"]
            return replace(value, offset=unsigned(first, False), sizes=(unsigned(size, False),))
        if isinstance(value.literal, bool):
            return value
        self.passed.append(f"{text}: {self.numbers.name(value.type)}")
        return Value(text, value.type, value.uniform)

    # ------------------------------------------------------------------------------------------------------- variables

    def variable(self, name, ending=""):
        """The name of a variable in WGSL, or of what belongs to it and has this ending: no two are the same."""
        if (name, ending) not in self.texts:
            text = safe(re.sub("[ .]", "_", name)) + ending
            text = f"{text}_" if not ending and re.search(r"^t\d+$|_\d+$", text) else text
            while text in self.module.taken or text in self.texts.values():
                text += "_"
            self.texts[name, ending] = text
        return self.texts[name, ending]

    def assign_name(self, name, value):
        if isinstance(value, Several):  # a variable for each item
            parts = tuple(f"{name}.{item}" for item in value.fields or range(len(value.items)))
            for part, item in zip(parts, self.fixed(self.whole(value)).items, strict=True):
                self.assign_name(part, item)
            self.env[name] = Parts(parts, value.fields)
            return
        if not isinstance(value, Value):
            self.env[name] = value
            return
        if isinstance(value.literal, bool):
            value = Value(self.numbers.constant(value.literal, "bool"), "bool")
        kind = "i64" if value.type == "literal" else value.type
        wider = [each for each in self.wider.get(name, ()) if self.joint(value, Value("", each)) == each != kind]
        for each in (kind, *wider):
            text = self.as_kind(name, each).text
            if not (value.uniform and self.flow):
                self.vary(text)
            write = self.emit if text in self.varying else self.line  # what is the same for all threads needs no mask
            write(f"{text} = {bare(self.numbers.cast(value, each).text)};")
            value = self.env[name] = self.as_kind(name, kind)

    def as_kind(self, name, kind):
        """The variable as one of this type."""
        known = self.kinds.setdefault(name, [])
        if kind not in known:
            known.append(kind)
        text = self.variable(name, f"_{kind}" if kind != known[0] else "")
        self.declared[text] = self.numbers.name(kind)
        return Value(text, kind, text not in self.varying)

    def vary(self, what):
        """Note that a variable, or a loop, is not the same for all threads."""
        if what not in self.varying:
            self.varying.add(what)
            self.again = True

    def meet(self, *paths):
        """The variables where paths of the program meet: each has one type there, or it is of no use afterwards."""
        joined = {}
        for name in dict.fromkeys(name for path in paths for name in path if " " not in name):
            values = [path[name] for path in paths if name in path]
            first = values[0]
            if all(each == first for each in values):
                joined[name] = first
            elif not all(isinstance(each, Value) for each in values):
                joined[name] = None
            elif len({each.text for each in values}) == 1:
                joined[name] = replace(first, uniform=all(each.uniform for each in values))
            else:
                kind = self.joint(*values)
                joined[name] = kind and self.as_kind(name, kind)
                if kind and kind not in self.wider.setdefault(name, []):
                    self.wider[name].append(kind)
                    self.again = True
        return joined

    def joint(self, *values):
        """The type of a variable that has these values on different paths; None if there is none."""
        try:
            return self.numbers.common(*values)
        except NotInWgsl:
            return None

    # ------------------------------------------------------------------------------------------------------ statements

    def block(self, body):
        """Translate statements; returns whether the end is reached."""
        before = None
        for statement in body:
            handler = getattr(self, f"do_{type(statement).__name__}", None)
            if handler is None:
                self.refuse(statement, "a kernel for WebGPU has no such statement")
            called = before.value if isinstance(before, ast.Expr) else None
            self.behind_barrier = isinstance(called, ast.Call) and self.cuda_name(called.func) == ("syncthreads",)
            whole = isinstance(statement, (ast.If, ast.While, ast.For))
            try:
                if self.guard and whole and not (self.waits([statement]) or exits(statement)):
                    falls_through = self.unguarded(lambda each=handler, at=statement: each(at))
                else:
                    falls_through = handler(statement)
            except Parted:
                if not self.module.masks:
                    raise
                self.refuse(statement, "threads wait for each other where only a part of them may come")
            except NotInWgsl as error:
                self.refuse(statement, str(error))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                if isinstance(error, TcgpuError):
                    raise
                self.refuse(statement, f"a kernel for WebGPU cannot do this ({error})")
            if falls_through is False:
                return False
            before = statement
        return True

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
        array = self.value(node.value) if isinstance(node.value, (ast.Name, ast.Attribute)) else None
        if not isinstance(array, Array) or array.where == "local" or array.offset is not None:
            return False  # each thread's own, or of a slice that may begin elsewhere in each thread
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
        return not any(re.search(rf"\b{name}", text) for name, text in pairs)

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
            (value,), (array, index) = self.held_before([value], lambda: self.values([target.value, target.slice]))
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
            (left,), right = self.held_before([self.load(array, index)], lambda: self.value(node.value))
            self.store(array, index, self.numbers.operate(name, left, right))
            return
        left, right = self.values([node.target, node.value])
        self.assign_name(node.target.id, self.numbers.operate(name, left, right))

    def do_Return(self, node):
        value = self.value(node.value) if node.value else Several(())
        items = value.items if isinstance(value, Several) else (value,)
        if any(not isinstance(item, Value) for item in items):
            self.refuse(node, "a device function for WebGPU returns numbers")
        if self.made and items:
            self.made.fields = getattr(value, "fields", ())
            self.returns(items)
        elif not self.guard:
            self.line("return;")
        if self.guard and self.flow:
            if node is not self.definition.body[-1]:
                self.line("return result;" if self.made and items else "return;")
        elif self.guard:
            self.vary("return under a mask")
            self.clear([*self.masks, *(mask for loop in self.loops for mask in loop.masks)])
        elif not self.flow:
            for loop in self.loops:
                self.leave(loop)
            self.vary("return")
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
        loop.varies = True
        self.vary(loop.key)

    def condition(self, test, together):
        """A condition as a bool; `together` if all threads of the block have to take the same path."""
        self.condition_node = test
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

    def agree(self, waits):
        """Whether all threads take the same path, as CUDA demands it, to where they wait like this."""
        return not self.guard and (waits == {"block"} or bool(waits) and not self.masked)

    def do_If(self, node):
        waits = self.waits([node])
        if self.loops and exits(node):
            waits |= self.loops[-1].waits
        value = self.condition(node.test, self.agree(waits))
        if value.literal is not None:
            return self.block(node.body if value.literal else node.orelse)
        if self.masked and not value.uniform and (waits or self.guard):
            return self.masked_if(node, value)
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
        self.flow = flow and not (self.loops and self.loops[-1].varies) and "return" not in self.varying
        return bool(paths)

    def masked_if(self, node, value):
        """An `if` where threads part that has a barrier, or an exit, in it: all threads go through both sides."""
        outer, flow, before, paths = self.guard, self.flow, self.env, []
        yes, no = self.slot("bool"), self.slot("bool")
        self.line(f"{yes} = {outer} && {value.text};" if outer else f"{yes} = {bare(value.text)};")
        self.line(f"{no} = {outer} && !{yes};" if outer else f"{no} = !{yes};")
        self.flow = False
        for mask, body in ((yes, node.body), (no, node.orelse)):
            self.env = dict(before)
            self.masks.append(mask)
            self.guard = mask
            if self.block(body):
                paths.append(self.env)
            self.masks.pop()
        self.guard, self.flow = outer, flow
        self.env = self.meet(*paths) if paths else before
        return bool(paths)

    def loop(self, node, head, step=""):
        """A loop. head: writes its condition, and returns it; step: what is done at the end of a round."""
        if node.orelse:
            self.refuse(node, "a loop has no else in a kernel for WebGPU")
        loop = Loop(node, self.waits([node]), False, False, len(self.masks))
        loop.varies = loop.key in self.varying or isinstance(node, ast.While) and self.maybe_nobody()
        loop.masked = self.masked and loop.varies and bool(loop.waits or self.guard)
        known = self.begins.setdefault(node, {})
        self.env = self.env | {name: kind and self.as_kind(name, kind) for name, kind in known.items()}
        self.loops.append(loop)
        flow, before = self.flow, dict(self.env)
        self.flow = flow and not loop.varies
        if loop.masked:
            after = self.masked_rounds(node, loop, head, step)
        else:
            place = len(self.lines)
            self.line("loop {")
            self.depth += 1
            start = len(self.lines)
            value = head()
            if not value.uniform:
                self.leave(loop)
            self.flow = self.flow and not loop.varies
            after = dict(self.env) if value.literal is None else None
            if after is not None and len(self.lines) == start:
                head = f"for (; {bare(value.text)}; {step})" if step else f"while ({bare(value.text)})"
                self.lines[place], step = self.lines[place].replace("loop", head), ""
            elif after is not None:
                self.line(f"if (!{value.text}) {{ break; }}")
            self.enter(node)
            if self.block(node.body):
                loop.nexts.append(self.env)
            if step:
                self.line(f"continuing {{ {step}; }}")
            self.depth -= 1
            self.line("}")
        self.loops.pop()
        for name, value in self.meet(before, *loop.nexts).items():
            kind, was = getattr(value, "type", None), before.get(name)
            if isinstance(was, Value) and kind != was.type or value is None is not was and not self.again:
                known[name], self.again = kind, True
        self.flow = flow and "return" not in self.varying
        paths = [path for path in (after, *loop.breaks) if path is not None]
        self.env = self.meet(*paths) if paths else before
        return bool(paths)

    def maybe_nobody(self):
        """Whether all threads may be gone here: then a condition that is the same for all of them may stay true."""
        return "return under a mask" in self.varying or bool(self.made and self.made.masked)

    def enter(self, node):
        """Begin a round: the variable of a `for`."""
        if isinstance(node, ast.For):
            self.assign(node.target, self.env[f"for {node.lineno} {node.col_offset}"])

    def masked_rounds(self, node, loop, head, step):
        """The rounds of a loop with a barrier, or an exit, in it: until the last thread has left it."""
        outer, inside, now = self.guard, self.slot("bool"), self.slot("bool")
        loop.masks = (inside,)
        self.line(f"{inside} = {outer or 'true'};")
        self.line("loop {")
        self.depth += 1
        start = len(self.lines)
        self.line(f"{now} = {inside};")
        self.masks.append(now)
        self.guard = now
        value = head()
        after = None
        if value.literal is None:
            after = dict(self.env)
            self.line(f"{now} = {now} && {value.text};")
        self.line(f"{inside} = {now};")
        question = len(self.lines)
        self.line(f"if (!any_of_block(lid, {inside})) {{ break; }}")
        self.enter(node)
        if self.block(node.body):
            loop.nexts.append(self.env)
        self.masks.pop()
        if step:
            self.line(f"if ({inside}) {{ {step}; }}")
        if not any(map(in_memory, self.lines[start:question])):
            self.drop_barrier(question)
        self.depth -= 1
        self.line("}")
        self.guard = outer
        return after

    def drop_barrier(self, start):
        """Drop a barrier from the end of a round; what is after `start` is the round: the next one begins with one."""
        for k in reversed(range(start, len(self.lines))):
            if self.lines[k] == f"{'  ' * self.depth}workgroupBarrier();":
                del self.lines[k]
            elif not in_memory(self.lines[k]) and self.lines[k].endswith((";", "; }")):
                continue
            return

    def do_While(self, node):
        together = self.agree(self.waits([node]))

        def head():
            value = self.condition(node.test, together)
            return Value("false", "bool") if value.literal is False else value

        return self.loop(node, head)

    def do_For(self, node):
        if isinstance(node.iter, ast.Tuple):
            if any(map(exits, node.body)):
                self.refuse(node.iter, "a loop over values is written out for WebGPU: no break, continue or return")
            for value in self.fixed(self.whole(self.value(node.iter))).items:
                self.assign(node.target, value)
                self.block(node.body)
            return True
        if not self.calls(node.iter, "range"):
            self.refuse(node.iter, "a kernel for WebGPU loops over range(...) or a tuple of values")
        bounds = self.values(node.iter.args)
        start, stop, step = {1: [literal(0), *bounds, literal(1)], 2: [*bounds, literal(1)], 3: bounds}[len(bounds)]
        kind = self.numbers.common(start, stop, step)
        step = step if step.constant is None else literal(step.constant)
        sign = step.literal
        if sign == 0:
            self.refuse(node.iter, "the step of a range is not 0")
        literals = kind == "literal"
        kind = counted = "i64" if literals else kind
        if literals and all(self.numbers.fits(each, "i32") for each in (start, stop, step)):
            counted = "i32"  # a GPU counts faster with 32 bits
        if kind == "i32" and sign is None or not all(self.numbers.fits(each, kind) for each in (start, stop)):
            counted = "i64"
        if kind == "u64" != counted:
            self.refuse(node.iter, "the bounds of a range of uint64 are not negative")
        stop = self.fixed(self.numbers.cast(stop, counted))
        if sign is None:
            step = self.fixed(self.numbers.cast(step, counted))
        hidden = f"for {node.lineno} {node.col_offset}"
        name = node.target.id if isinstance(node.target, ast.Name) else "value"
        variable = f"{name} next{' ' * len(self.loops)}"  # no name of Python: a loop inside may have the same target
        self.assign_name(variable, self.numbers.cast(start, counted))
        at = self.env[variable]
        self.env[hidden] = self.numbers.cast(at, kind)
        if not step.uniform or not literals and self.maybe_nobody():
            self.vary(at.text)
        together = self.agree(self.waits(node.body))

        def head():
            if sign is None and counted[0] == "i":  # the sign of the step is not known here
                up, down = self.numbers.compare("<", at, stop).text, self.numbers.compare(">", at, stop).text
                positive = self.numbers.compare(">", step, literal(0)).text
                value = Value(f"select({down}, {up}, {positive})", "bool", at.uniform and stop.uniform and step.uniform)
            else:
                value = self.numbers.compare(">" if sign is not None and sign < 0 else "<", at, stop)
            return self.agreed(value) if together else value

        return self.loop(node, head, f"{at.text} = {self.following(at, stop, step)}")

    def following(self, at, stop, step):
        """The text of the number that follows in a range: `stop` where there is none, as numbers wrap around."""
        numbers, kind, sign = self.numbers, at.type, step.literal
        if sign in (1, -1) or kind == "i64":
            name = "add" if sign is None or sign > 0 else "sub"
            return numbers.operate(name, at, step if sign is None else literal(abs(sign))).text
        down = sign is not None and sign < 0
        a, b, by = (numbers.cast(each, kind.replace("i", "u")) for each in (at, stop, literal(-sign) if down else step))
        left = numbers.operate("sub", a, b) if down else numbers.operate("sub", b, a)
        far = numbers.operate("sub" if down else "add", a, numbers.extreme("min", [by, left]))
        return numbers.cast(far, kind).text

    def do_Break(self, node):
        return self.jump("break;", self.loops[-1].breaks, self.loops[-1].masks)

    def do_Continue(self, node):
        return self.jump("continue;", self.loops[-1].nexts, ())

    def jump(self, text, paths, masks):
        loop = self.loops[-1]
        paths.append(dict(self.env))
        if loop.masked:
            self.clear([*masks, *self.masks[loop.depth :]])
        else:
            if not self.flow:
                self.leave(loop)
            self.line(text)
        return False
