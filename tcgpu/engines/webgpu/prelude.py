"""What a translated kernel calls, in WGSL: a kernel has what it uses of `helpers`."""

import re

DIVISIONS = """\
// Quotients are rounded down, and a division by 0 gives 0, as in NumPy. Vulkan leaves % of negative numbers undefined.
fn div_i32(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  let q = a / b;
  return select(q, q - 1, a - q * b != 0 && ((a < 0) != (b < 0)));
}
fn mod_i32(a: i32, b: i32) -> i32 { return select(a - div_i32(a, b) * b, 0, b == 0); }
fn div_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a / b; }
fn mod_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a % b; }
"""
WIDE_DIVISIONS = """\
fn div_i64(a: i64, b: i64) -> i64 {
  if (b == 0li) { return 0li; }
  let q = a / b;
  let rest = a - q * b;
  return q - select(0li, 1li, rest != 0li && (rest ^ b) < 0li);
}
fn mod_i64(a: i64, b: i64) -> i64 { return select(a - div_i64(a, b) * b, 0li, b == 0li); }
fn div_u64(a: u64, b: u64) -> u64 { if (b == 0lu) { return 0lu; } return a / b; }
fn mod_u64(a: u64, b: u64) -> u64 { if (b == 0lu) { return 0lu; } return a % b; }
"""
PAIRS = """\
// Integers of 64 bits are pairs of words here, vec2<u32>(low, high).
fn from_i32(a: i32) -> vec2<u32> { return vec2<u32>(u32(a), u32(a >> 31u)); }
fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn sub_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
fn product(a: u32, b: u32) -> vec2<u32> {
  let a_low = a & 0xffffu; let a_high = a >> 16u; let b_low = b & 0xffffu; let b_high = b >> 16u;
  let middle = a_high * b_low + ((a_low * b_low) >> 16u);
  let other = a_low * b_high + (middle & 0xffffu);
  return vec2<u32>(a * b, a_high * b_high + (middle >> 16u) + (other >> 16u));
}
fn mul_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = product(a.x, b.x);
  return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}
fn shl_64(a: vec2<u32>, by: u32) -> vec2<u32> {
  if (by == 0u) { return a; }
  if (by >= 32u) { return vec2<u32>(0u, a.x << (by - 32u)); }
  return vec2<u32>(a.x << by, (a.y << by) | (a.x >> (32u - by)));
}
fn shr_u64(a: vec2<u32>, by: u32) -> vec2<u32> {
  if (by == 0u) { return a; }
  if (by >= 32u) { return vec2<u32>(a.y >> (by - 32u), 0u); }
  return vec2<u32>((a.x >> by) | (a.y << (32u - by)), a.y >> by);
}
fn shr_i64(a: vec2<u32>, by: u32) -> vec2<u32> {
  let high = i32(a.y);
  if (by == 0u) { return a; }
  if (by >= 32u) { return vec2<u32>(u32(high >> (by - 32u)), u32(high >> 31u)); }
  return vec2<u32>((a.x >> by) | (a.y << (32u - by)), u32(high >> by));
}
fn less_u64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
fn less_i64(a: vec2<u32>, b: vec2<u32>) -> bool { return i32(a.y) < i32(b.y) || (a.y == b.y && a.x < b.x); }
fn div_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (all(b == vec2<u32>(0u, 0u))) { return b; }
  if (a.y == 0u && b.y == 0u) { return vec2<u32>(a.x / b.x, 0u); }
  var rest = vec2<u32>(0u, 0u);
  var quotient = vec2<u32>(0u, 0u);
  for (var k = 0u; k < 64u; k++) {  // by hand, a bit at a time
    let over = (rest.y >> 31u) != 0u;
    rest = shl_64(rest, 1u);
    rest.x |= shr_u64(a, 63u - k).x & 1u;
    quotient = shl_64(quotient, 1u);
    if (over || !less_u64(rest, b)) { rest = sub_64(rest, b); quotient.x |= 1u; }
  }
  return quotient;
}
fn div_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let zero = vec2<u32>(0u, 0u);
  if (all(b == zero)) { return zero; }
  let a_negative = less_i64(a, zero); let b_negative = less_i64(b, zero);
  let n = select(a, sub_64(zero, a), a_negative); let d = select(b, sub_64(zero, b), b_negative);
  let q = div_u64(n, d);
  if (a_negative == b_negative) { return q; }
  return sub_64(select(sub_64(zero, vec2<u32>(1u, 0u)), zero, all(mul_64(q, d) == n)), q);
}
fn mod_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(sub_64(a, mul_64(div_u64(a, b), b)), b, all(b == vec2<u32>(0u, 0u)));
}
fn mod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(sub_64(a, mul_64(div_i64(a, b), b)), b, all(b == vec2<u32>(0u, 0u)));
}
"""
SAME = """\
// A browser demands to know that all threads of a block reach a barrier: here they take the condition of thread 0.
var<workgroup> of_thread_0: u32;
fn same(lid: u32, value: bool) -> bool {
  if (lid == 0u) { of_thread_0 = select(0u, 1u, value); }
  return workgroupUniformLoad(&of_thread_0) != 0u;
}
fn same_word(lid: u32, value: u32) -> u32 {
  if (lid == 0u) { of_thread_0 = value; }
  return workgroupUniformLoad(&of_thread_0);
}
"""
ANY = """\
// Whether any thread of the block says yes.
var<workgroup> anyone: u32;
fn any_of_block(lid: u32, value: bool) -> bool {
  if (lid == 0u) { anyone = 0u; }
  workgroupBarrier();
  if (value) { anyone = 1u; }
  return workgroupUniformLoad(&anyone) != 0u;
}
"""
NUMBERED_ANY = """\
// Whether any thread of the block says yes: it writes the number of the question, which begins at 1, where the question
// before last was answered. That the answer is the same for all threads, a browser would not see.
var<workgroup> anyone: array<u32, 2>;
var<private> question: u32;
fn any_of_block(lid: u32, value: bool) -> bool {
  question += 1u;
  if (value) { anyone[question & 1u] = question; }
  workgroupBarrier();
  return anyone[question & 1u] == question;
}
"""
FIRST_QUESTION = "  if (lid < 2u) { anyone[lid] = 0u; }\n  workgroupBarrier();\n"  # of `main`
COUNTS = """\
fn count_of_block(lid: u32, value: bool) -> u32 {
  told[lid] = select(0u, 1u, value);
  workgroupBarrier();
  if (lid == 0u) { for (var k = 1u; k < THREADSu; k++) { told[0] += told[k]; } }
  return workgroupUniformLoad(&told[0]);
}
"""
TOLD = """\
// What the threads of a block tell each other.
var<workgroup> told: array<u32, THREADS>;
"""
WARPS = """\
// A warp is 32 threads that follow each other; its lanes, too, tell each other through the block's memory.
fn shuffled(lid: u32, value: u32, lane: u32) -> u32 {
  told[lid] = value;
  workgroupBarrier();
  let other = (lid & ~31u) + lane;
  let found = told[select(lid, other, lane < 32u && other < THREADSu)];
  workgroupBarrier();
  return found;
}
fn ballot(lid: u32, value: bool) -> u32 {
  told[lid] = select(0u, 1u, value);
  workgroupBarrier();
  var votes = 0u;
  for (var k = 0u; k < 32u; k++) {
    let other = (lid & ~31u) + k;
    if (other < THREADSu) { votes |= told[other] << k; }
  }
  workgroupBarrier();
  return votes;
}
"""
SUBGROUPS = """\
// The GPU's own groups of 32 threads are the warps.
fn shuffled(lid: u32, value: u32, lane: u32) -> u32 {
  let other = (lid & ~31u) + lane;
  return subgroupShuffle(value, select(lid & 31u, lane, lane < 32u && other < THREADSu));
}
fn ballot(lid: u32, value: bool) -> u32 { return subgroupBallot(value).x; }
"""


def helpers(wide, subgroups, threads):
    """Name of a function or variable -> its text, for this number of threads a block and these features."""
    texts = [DIVISIONS, WIDE_DIVISIONS if wide else PAIRS, SAME, TOLD, COUNTS]
    texts += [NUMBERED_ANY, SUBGROUPS] if subgroups else [ANY, WARPS]
    text = "".join(texts).replace("THREADS", str(threads))
    parts = re.findall(r"^(?://.*\n)*(?:fn|var).*\n(?:[ }].*\n)*", text, re.MULTILINE)
    return {re.search(r"^(?:fn|var<\w+>) (\w+)", part, re.MULTILINE)[1]: part for part in parts}
