/** Many calls of each function, with digests of PyTorch's answers: OPT_WRITE_GOLDENS=1 asks PyTorch, and stores them again. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { type Device, OptError, type Tensor, tidy } from "@opt/core";
import { describe, expect, it } from "vitest";
import { eachDevice } from "../each-device";
import { type DigestedTensor, digestOf, isDigestOf } from "./digest";
import { torchPython } from "./python";
import {
  askTorch,
  computed,
  expectAnswer,
  leavesOf,
  numbersOf,
  type StoredTensor,
  type TorchAnswer,
  type TorchCall,
  toleranceOf,
} from "./torch-calls";

/** Calls by the function that they are of. */
export type Sweep = Readonly<Record<string, readonly TorchCall[]>>;

/** Of one function: what its calls are, and an answer for each. */
interface StoredFunction {
  readonly calls: string;
  readonly answers: readonly string[];
}

const REJECTED = "rejected";
const PRESENT = "+";
const ABSENT = "-";

export interface SweepOptions {
  /** Default js. */
  readonly devices?: readonly string[];
  /** Only one of so many calls. Default 1. */
  readonly every?: number;
}

/** Registers a test for each function. A failure names the call; with PyTorch at hand it also shows the numbers. */
export async function sweepSuite(
  file: URL,
  sweep: Sweep,
  { devices = ["js"], every = 1 }: SweepOptions = {},
): Promise<void> {
  const path = fileURLToPath(file);
  if (process.env.OPT_WRITE_GOLDENS === "1" && torchPython !== undefined) store(path, sweep);
  const stored = JSON.parse(readFileSync(path, "utf8")) as Record<string, StoredFunction>;
  it("has answers to the calls that it makes", () => {
    const made = Object.entries(sweep).map(([name, calls]) => [name, fingerprintOf(calls)]);
    const answered = Object.entries(stored).map(([name, { calls }]) => [name, calls]);
    expect(made, "run this test with OPT_WRITE_GOLDENS=1 and OPT_TORCH_PYTHON").toEqual(answered);
  });
  const register = (device: Device) => {
    it.each(Object.keys(sweep))("%s", (name) => {
      const calls = sweep[name]!.map((call, i) => ({ call, answer: stored[name]!.answers[i]! }));
      const tried = calls.filter((_, i) => i % every === 0);
      const wrong = tried.filter(({ call, answer }) => !isAnswered(call, answer, device)).map(({ call }) => call);
      if (wrong.length > 0 && torchPython !== undefined) {
        for (const [i, answer] of askTorch(torchPython, wrong).entries()) expectAnswer(wrong[i]!, answer, { device });
      }
      expect(wrong.map((call) => `${call.name}: ${call.code}`)).toEqual([]);
    });
  };
  await eachDevice((device) => describe("as PyTorch", () => register(device)), devices);
}

function isAnswered(call: TorchCall, answer: string, device: Device): boolean {
  return tidy(() => {
    const leaves = leavesOf(call, device);
    if (answer === REJECTED) return isRejected(call, leaves);
    const { outputs, gradients, second } = computed(call, leaves);
    const byValue = call.second === true;
    return [outputs, gradients, second]
      .map((tensors) => [...tensors])
      .every((tensors, part) => {
        const digests = answer.split("|")[part]!.split(" ").filter(Boolean);
        return (
          digests.length === tensors.length &&
          tensors.every((tensor, i) => isAsTold(call, tensor, digests[i]!, part < 2 || byValue))
        );
      });
  });
}

function isRejected({ run }: TorchCall, leaves: readonly Tensor[]): boolean {
  try {
    run(...leaves);
  } catch (error) {
    return error instanceof OptError;
  }
  return false;
}

function isAsTold(call: TorchCall, tensor: Tensor | null, digest: string, byValue: boolean): boolean {
  if (tensor === null || digest === ABSENT) return tensor === null && digest === ABSENT;
  if (!byValue) return digest === PRESENT;
  const { dtype, shape } = tensor;
  const values = Float64Array.from(tensor.dataSync() as ArrayLike<number>);
  return isDigestOf(digest, { dtype, shape, values }, toleranceOf(call, dtype));
}

function store(path: string, sweep: Sweep): void {
  const calls = Object.values(sweep).flat();
  const answers = askTorch(torchPython!, calls).map((answer, i) => lineOf(calls[i]!, answer));
  let next = 0;
  const entries = Object.entries(sweep).map(([name, own]) => {
    const lines = own.map(() => JSON.stringify(answers[next++]));
    return `${JSON.stringify(name)}: {"calls": "${fingerprintOf(own)}", "answers": [\n${lines.join(",\n")}\n]}`;
  });
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `{\n${entries.join(",\n")}\n}\n`);
}

/** Outputs, gradients of the inputs that want them, and second gradients, parted by "|". */
function lineOf({ inputs, second }: TorchCall, answer: TorchAnswer): string {
  if ("rejected" in answer) return REJECTED;
  const digested = (stored: StoredTensor): DigestedTensor => ({ ...stored, values: numbersOf(stored) });
  const told = (stored: StoredTensor | null) => (stored === null ? ABSENT : digestOf(digested(stored)));
  const ofWanted = (all: readonly (StoredTensor | null)[]) => all.filter((_, i) => inputs[i]!.requiresGrad === true);
  const further = ofWanted(answer.second ?? []);
  return [
    answer.outputs.map(told),
    ofWanted(answer.gradients).map(told),
    second === "presence" ? further.map((each) => (each === null ? ABSENT : PRESENT)) : further.map(told),
  ]
    .map((part) => part.join(" "))
    .join("|");
}

/** Of names, code and inputs (FNV-1a): other calls have other answers. */
function fingerprintOf(calls: readonly TorchCall[]): string {
  let hash = 0x811c9dc5;
  for (const { name, code, inputs } of calls) {
    const text = JSON.stringify([name, code, inputs.map(({ values, ...rest }) => [Array.from(values), rest])]);
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return (hash >>> 0).toString(16);
}
