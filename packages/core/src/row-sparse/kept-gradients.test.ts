// Row-sparse gradients that stay from step to step, and what is done to them between: as dense ones.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { tidy } from "../device/scope";
import { clipGradNorm, clipGradValue } from "../optimizer/gradients/clip";
import type { Tensor } from "../tensor/tensor";
import { gatherSparse } from "./gather-sparse";
import { rowSparse } from "./row-sparse";

interface Run {
  readonly table: Tensor;
  readonly optimizer: Momentum;
}
type Act = (run: Run) => void;

const step: Act = ({ optimizer }) => optimizer.step();
const clear: Act = ({ optimizer }) => optimizer.zeroGrad({ setToNull: false });
const clipNorm: Act = ({ table }) => clipGradNorm([table], 0.5).dispose();
const clipValue: Act = ({ table }) => clipGradValue([table], 0.25);

/** The table after `before` and three times `body`, and what is done between. */
function tableAfter(mode: "dense" | "sparse", lazyMode: boolean, acts: readonly (readonly Act[])[], on = {}) {
  const [before = [], body = [], between = []] = acts;
  const run = start(mode, lazyMode, on);
  const all = (list: readonly Act[]) => {
    for (const act of list) act(run);
  };
  all(before);
  all(body);
  for (let i = 0; i < 2; i++) {
    all(between);
    all(body);
  }
  return run.table.tolist();
}

function start(mode: "dense" | "sparse", lazyMode: boolean, on = {}): Run {
  const table = parameter([[1], [2], [3]], on);
  table.grad =
    mode === "dense"
      ? tensor([[3], [0], [2]], on)
      : rowSparse(tensor([0, 2, 0], { dtype: "i32", ...on }), tensor([[1], [2], [2]], on), [3, 1]);
  return { table, optimizer: new Momentum([table], { lazyMode, momentum: 0 }) };
}

describe.each([true, false])("kept row-sparse gradients, lazyMode %s", (lazyMode) => {
  it.each<[string, ...Act[][]]>([
    ["stepped", [], [step]],
    ["stepped, then cleared", [], [step, clear]],
    ["cleared, then stepped", [], [clear, step]],
    ["clipped, then stepped", [], [clipNorm, step]],
    ["stepped, then clipped", [], [step, clipValue, step]],
    ["clipped before", [clipNorm], [step, clipValue]],
    ["stepped before", [step], [step, clipNorm]],
    ["clipped between", [], [step], [clipValue]],
    ["cleared between", [], [step], [clear]],
  ])("%s: as dense ones", (_, ...acts) => {
    const dense = tableAfter("dense", lazyMode, acts);
    for (const on of [{}, { device: new FakeDevice({ async: false }) }]) {
      expect(tableAfter("sparse", lazyMode, acts, on)).toEqual(dense);
    }
  });

  it("are rejected where a compiled function begins", () => {
    const { table, optimizer } = start("sparse", lazyMode);
    expectCode(
      "UNSUPPORTED",
      compile(() => optimizer.step()),
    );
    expect(table.tolist()).toEqual([[1], [2], [3]]);
  });

  it("cleared in place, they grow no longer from step to step", () => {
    const table = parameter([[1], [2], [3]]);
    const run = { table, optimizer: new Momentum([table], { lazyMode }) };
    const rows = tensor([0, 2, 0], { dtype: "i32" });
    const memory = [1, 2, 3, 4].map(() => {
      tidy(() => gatherSparse(table, rows).sum().backward());
      step(run);
      clear(run);
      return table.device.memory();
    });
    expect(memory.at(-1)).toEqual(memory[1]);
    expect(String(table.grad)).toBe("RowSparse of 3 rows, f32 [3, 1] on js");
  });
});
