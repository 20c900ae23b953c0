/** Random training programs in PyTorch's float64 and in ours. OPT_TORCH_PYTHON names a Python that has it. */
import { compareWithTorch, generate, listing, torchCan, torchPython } from "@opt/testkit";
import { expect, it } from "vitest";
import { setUp } from "./setup";

const PROGRAMS = Number(process.env.OPT_PROGRAMS ?? 200);
const first = Number(process.env.OPT_PROGRAMS_FIRST ?? 1);

it(`${PROGRAMS} programs do the same in PyTorch`, async ({ skip }) => {
  const opened = await setUp("js");
  if (torchPython === undefined) return skip("OPT_TORCH_PYTHON is not set");
  if (typeof opened === "string") return skip(opened);
  const programs = [];
  for (let seed = first; programs.length < PROGRAMS; seed++) {
    const program = generate(seed);
    if (torchCan(program)) programs.push(program);
  }
  const { compared, failures } = await compareWithTorch(torchPython, programs, opened);
  expect(failures.map(({ detail, program }) => `seed ${program.seed}: ${detail}\n${listing(program)}`)).toEqual([]);
  expect(compared).toBeGreaterThan(PROGRAMS / 2);
});
