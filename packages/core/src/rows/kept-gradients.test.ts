// Row-sparse gradients that stay from step to step, and what is done to them between: eager, recorded, and as dense ones.
import { describe, expect, it } from "vitest";
import { parameter, tensor } from "../create";
import { tidy } from "../device/scope";
import { clipGradNorm, clipGradValue } from "../optimizer/gradients/clip";
import type { Tensor } from "../tensor/tensor";
import { FakeDevice } from "../testing/fake-backend";
import { Momentum } from "../testing/momentum";
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
function tableAfter(
  mode: "dense" | "eager" | "recorded",
  lazyMode: boolean,
  acts: readonly (readonly Act[])[],
  on = {},
) {
  const [before = [], body = [], between = []] = acts;
  const table = parameter([[1], [2], [3]], on);
  const run: Run = { table, optimizer: new Momentum([table], { lazyMode, momentum: 0 }) };
  table.grad =
    mode === "dense"
      ? tensor([[3], [0], [2]], on)
      : rowSparse(tensor([0, 2, 0], { dtype: "i32", ...on }), tensor([[1], [2], [2]], on), [3, 1]);
  const all = (list: readonly Act[]) => {
    for (const act of list) act(run);
  };
  all(before);
  if (mode === "recorded") {
    const recording = table.device.record(() => all(body));
    for (let i = 0; i < 2; i++) {
      all(between);
      recording.replay();
    }
  } else {
    all(body);
    for (let i = 0; i < 2; i++) {
      all(between);
      all(body);
    }
  }
  return table.tolist();
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
  ])("%s: replayed as they are again, and as dense ones", (_, ...acts) => {
    const dense = tableAfter("dense", lazyMode, acts);
    for (const on of [{}, { device: new FakeDevice({ async: false }) }]) {
      expect(tableAfter("eager", lazyMode, acts, on)).toEqual(dense);
      expect(tableAfter("recorded", lazyMode, acts, on)).toEqual(dense);
    }
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
