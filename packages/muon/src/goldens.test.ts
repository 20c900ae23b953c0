// Muon against PyTorch 2.13.
import { muonGoldens, runOptimizer } from "@opt/testkit";
import { expect, it } from "vitest";
import { Muon } from "./muon";

it.each(muonGoldens().map((golden) => [golden.shape.join(" x "), golden.options, golden] as const))(
  "PyTorch's float32: %s, %o",
  async (_, { lr = 1e-3, adjustLrFn }, { shape, param, momentum, ...run }) => {
    const { trace, state } = await runOptimizer(Muon, { ...run, shape });
    expect(state.get("momentum_buffer")).toAgreeWith(momentum);
    const [rows, columns] = shape;
    const factor = adjustLrFn ? 0.2 * Math.sqrt(Math.max(rows, columns)) : Math.sqrt(Math.max(1, rows / columns));
    expect(trace.at(-1)).toAgreeWith(param, { absolute: 0.1 * factor * Number(lr), relative: 0 });
  },
);
