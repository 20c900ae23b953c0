// "Gradients accumulate in .grad": whatever comes between, .grad is the sum of all that backward gave since it was cleared.
import fc from "fast-check";
import { expect, it } from "vitest";
import { gatherSparse, grad, init, noGrad, parameter, tensor } from "./index";

await init("js");

const weights = fc.array(fc.integer({ min: -4, max: 4 }), { minLength: 3, maxLength: 3 });
const rows = fc.array(fc.nat(2), { minLength: 1, maxLength: 4 });
/** What a program may do between two looks at a gradient. */
const acts = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("backward" as const), weights, times: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ do: fc.constant("rows" as const), rows }),
    fc.record({ do: fc.constantFrom("grad" as const, "noGrad" as const), weights }),
    fc.record({ do: fc.constantFrom("null" as const, "zero" as const) }),
  ),
  { minLength: 1, maxLength: 8 },
);

it("adds up dense and row-sparse gradients, and grad() and noGrad() add nothing", () => {
  fc.assert(
    fc.property(acts, fc.boolean(), (list, createGraph) => {
      const w = parameter([[1], [2], [3]], { dtype: "f64" });
      let expected: number[] | null = null;
      const add = (more: readonly number[]) => {
        expected = more.map((value, i) => (expected?.[i] ?? 0) + value);
      };
      for (const act of list) {
        if (act.do === "backward") {
          const loss = w.mul(tensor(act.weights, { dtype: "f64" }).reshape([3, 1])).sum();
          for (let i = 0; i < act.times; i++) {
            loss.backward(undefined, { retainGraph: true, createGraph });
            add(act.weights);
          }
        } else if (act.do === "rows") {
          gatherSparse(w, tensor(act.rows, { dtype: "i32" }))
            .sum()
            .backward();
          add([0, 1, 2].map((row) => act.rows.filter((one) => one === row).length));
        } else if (act.do === "grad") grad(w.mul(act.weights[0]!).sum(), [w]);
        else if (act.do === "noGrad") noGrad(() => w.mul(act.weights[0]!).sum());
        else if (act.do === "null") {
          w.grad = null;
          expected = null;
        } else if (w.grad !== null) {
          w.grad = tensor([[0], [0], [0]], { dtype: "f64" });
          expected = [0, 0, 0];
        }
      }
      const { grad: found } = w;
      const dense = found === null ? null : "toDense" in found ? (found.toDense as () => typeof w)() : found;
      expect(dense && [...dense.dataSync()]).toEqual(expected);
    }),
    { numRuns: 60 },
  );
});
