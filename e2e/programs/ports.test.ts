/**
 * PyTorch programs of many kinds, ported as users write them: every loss is PyTorch's, eager and compiled. Stored losses judge where there
 * is no PyTorch. With OPT_TORCH_PYTHON the twins train beside; with OPT_WRITE_GOLDENS=1 too their losses are stored anew.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { init } from "@opt/core";
import { torchPython, triesAll } from "@opt/testkit";
import { beforeAll, describe, expect, it } from "vitest";
import { PORTS } from "./ports/table";
import { losses, STEPS, twins } from "./ports/train";

type Losses = Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>;

const names = Object.keys(PORTS);
const file = new URL("./ports/goldens/losses.json", import.meta.url);
const live = torchPython === undefined ? undefined : await twins(torchPython, names, ["f64", "f32"]);
if (live !== undefined && process.env.OPT_WRITE_GOLDENS === "1") writeFileSync(file, listed(live));
const stored: Losses = JSON.parse(readFileSync(file, "utf8"));

beforeAll(() => init("js"));

it("there are losses of every port", () => expect(Object.keys(stored)).toEqual(names));

// Without `npm run test:full`, some steps, in f32 and f64 by turns.
const steps = triesAll ? STEPS : 12;

describe.each(names.map((name, i) => [name, i] as const))("%s", (name, i) => {
  const dtypes = [
    ["f64", 1e-12],
    ["f32", name === "images/mixed-precision" ? 2 ** -8 : 1e-5],
  ] as const;
  it.each(triesAll ? dtypes : [dtypes[i % 2]!])(
    "has PyTorch's losses in %s, eager and compiled",
    async (dtype, relative) => {
      const ours = await losses(name, dtype, false, steps);
      for (const theirs of [stored[name]![dtype]!, live?.[name]?.[dtype] ?? []])
        expect(ours.slice(0, theirs.length)).toAgreeWith(theirs.slice(0, steps), { relative, absolute: 0 });
      expect(await losses(name, dtype, true, steps)).toEqual(ours);
    },
  );
});

/** JSON with a line for each run. */
function listed(all: Losses): string {
  const runs = ([dtype, values]: [string, readonly number[]]) => {
    const numbers = dtype === "f32" ? values.map((value) => Number(value.toPrecision(9))) : values;
    return `  "${dtype}": ${JSON.stringify(numbers)}`;
  };
  const ports = Object.entries(all).map(
    ([name, byDtype]) => ` ${JSON.stringify(name)}: {\n${Object.entries(byDtype).map(runs).join(",\n")}\n }`,
  );
  return `{\n${ports.join(",\n")}\n}\n`;
}
