/** What compiled functions say when a call is not like the others. */
import { OptError } from "../errors/errors";
import type { Difference, Step } from "./steps";

/** What changed, where nobody knows more. */
const UNKNOWN = "the state of an optimizer, a gradient or a setting";

const warning = (problem: string) =>
  `[compile] ${problem} Pass a number that changes as a tensor, pad shapes to a few sizes, or leave the function eager.`;

/** @param changed a property */
export const neverReplayed = (runs: number, changed = UNKNOWN) =>
  warning(`calls with equal arguments should be replayed, got ${runs} in a row that were not: ${changed} changed.`);

/** @param before and `after` the arguments of two traces, as texts */
export function manyTraces(
  most: number,
  before: readonly string[],
  after: readonly string[],
  changed = UNKNOWN,
): string {
  const index = after.findIndex((text, i) => text !== before[i]);
  const what = index < 0 ? `${changed} changes` : `argument ${index} changes from ${before[index]} to ${after[index]}`;
  return warning(`a function should need at most ${most} traces, got more: ${what}.`);
}

/** Compares parts of launches of two traces. */
interface Compared {
  isSameValue(a: unknown, b: unknown): boolean;
}

export function changed(difference: Difference, compared: Compared): OptError {
  const text = differenceText(difference, compared);
  const problem = `a compiled function must do the same in each call, got a difference: ${text}.`;
  const cure =
    "Pass numbers and tensors that change as arguments. In fit, write them into a tensor that you set(), or use compile: false. " +
    "After replacing an optimizer or a model, call dispose() of the compiled function.";
  return new OptError("CHANGED", "compile", problem, cure);
}

function differenceText({ index, step, other, line }: Difference, compared: Compared): string {
  const [name, before] = [nameOf(step), nameOf(other)];
  if (step === undefined) return `${before} did not come`;
  const how = name === before ? ` with ${detail(step, other!, compared)}` : `, and was ${before}`;
  return `step ${index} is ${name} (${line})${how}`;
}

/** What differs between two steps of one kind. */
function detail(a: Step, b: Step, compared: Compared): string {
  if (a.kind === "write") return "other numbers, or in another tensor";
  if (a.kind !== "launch" || b.kind !== "launch") return "other tensors";
  const [now, before] = [a.launch, b.launch] as unknown as Record<string, unknown>[];
  const name = Object.keys(now!).find((key) => key !== "kernel" && !compared.isSameValue(now![key], before![key]));
  const values = [now![name!], before![name!]];
  const areNumbers = values.every((value) => [value].flat(3).every((one) => typeof one === "number"));
  return areNumbers ? `${name} ${values[0]}, was ${values[1]}` : "another tensor, shape or dtype";
}

function nameOf(step: Step | undefined): string {
  if (step === undefined) return "nothing";
  if (step.kind === "host") return "a hook";
  if (step.kind === "write") return step.isConstant ? "data made inside" : "random numbers";
  const { spec } = step.launch.kernel;
  if (spec.kind !== "map") return spec.kind;
  const ops = spec.program.nodes.filter(({ args }) => args.length > 0).map(({ op }) => op);
  return ops.length === 0 ? "fill" : ops.join("+");
}
