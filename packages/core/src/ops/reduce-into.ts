/** Several tensors added in one pass over memory, and in place: what collectives add with. */

import { tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { Expression } from "../rule/expression";
import { type Program, trace } from "../rule/program";
import { div } from "../rule/symbols";
import { checkWritable } from "../tensor/copied";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { copyElements } from "./cast";
import { checkTensor } from "./check-tensor";
import { computeOn } from "./compute";
import { elementwise } from "./elementwise/elementwise";
import { ELEMENTWISE } from "./elementwise/elementwise-table";

export type Combination = "add" | "minimum" | "maximum";

/** Of one launch: devices bind few buffers at once. */
const AT_ONCE = 4;
const programs = new Map<string, Program>();

/**
 * output = (a + b + c ...) / divisor, added in this order, rounded after each operation. `output` may be one of them:
 * then the others' memory is used on the way. It counts as no write to `output`: whoever asked for its memory by `hostBytes` has counted that.
 *
 * @throws OptError BAD_ARGUMENT; BAD_STATE for an output that is a copy such as the result of slice
 */
export function reduceInto(output: Tensor, inputs: readonly Tensor[], how: Combination, divisor = 1): void {
  checkTensor("reduceInto", output, "output");
  checkWritable("reduceInto", output);
  checkValue(Array.isArray(inputs), "reduceInto", "inputs", "an array", inputs);
  for (const input of inputs) checkTensor("reduceInto", input, "inputs");
  const { dtype, size, device } = output;
  const areAlike =
    inputs.length > 0 && inputs.every((x) => x.dtype === dtype && x.size === size && x.device === device);
  check(
    areAlike,
    "BAD_ARGUMENT",
    "reduceInto",
    () => `needs tensors of one dtype, size and device, got ${inputs.length}.`,
  );
  check(
    ["add", "minimum", "maximum"].includes(how) && typeof divisor === "number",
    "BAD_ARGUMENT",
    "reduceInto",
    () => `needs "add", "minimum" or "maximum", and a number as divisor, got ${show(how)} and ${show(divisor)}.`,
  );
  noGrad(() =>
    tidy(() => {
      if (computeOn(device, dtype) !== dtype) copyElements(oneByOne(inputs, how, divisor), output);
      else inOnePass(output, inputs, how, divisor);
    }),
  );
}

/** What is stored in fewer bits than it is computed in is rounded to them after each operation. */
function oneByOne(inputs: readonly Tensor[], how: Combination, divisor: number): Tensor {
  const sum = inputs.reduce((sum, x) => elementwise(how, [sum, x]));
  return divisor === 1 ? sum : elementwise("div", [sum, divisor]);
}

function inOnePass(output: Tensor, inputs: readonly Tensor[], how: Combination, divisor: number): void {
  const { device, size } = output;
  const dtype = output.dtype as "f32";
  let sum: Tensor | undefined;
  for (let begin = 0; begin < inputs.length; ) {
    const taken = inputs.slice(begin, begin + (sum ? AT_ONCE - 1 : AT_ONCE));
    const all = sum ? [sum, ...taken] : taken;
    // What is still to be added stays what it is.
    const target = inputs.includes(output, begin + taken.length) ? all[0]! : output;
    const isDivided = divisor !== 1 && begin + taken.length === inputs.length;
    const program = programOf(all.length, how, isDivided);
    device.launch({
      kind: "map",
      kernel: device.kernel({ kind: "map", program, dtype }),
      inputs: all.map((x) => x.memorySlice()),
      output: target.memorySlice(),
      scalars: isDivided ? [divisor] : [],
      shape: [size],
      strides: all.map(() => [1]),
    });
    sum = target;
    begin += taken.length;
  }
}

function programOf(count: number, how: Combination, isDivided: boolean): Program {
  const key = [count, how, isDivided].join(" ");
  const known = programs.get(key);
  if (known) return known;
  const terms = Array.from({ length: count }, (_, slot) => new Expression("buffer", [], slot));
  const sum = terms.reduce((sum, x) => ELEMENTWISE[how].forward(sum, x) as Expression);
  const expression = isDivided ? div(sum, new Expression("scalar", [], 0)) : sum;
  const names = terms.map((_, slot) => `x${slot}`);
  const program = trace(names, isDivided ? ["divisor"] : [], [{ slot: 0, expression }]);
  programs.set(key, program);
  return program;
}
