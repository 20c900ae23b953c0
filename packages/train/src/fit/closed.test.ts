// Who asks for batches gives their iterator back, wherever the loop ends, with other ranks or alone.
import { init, type Tensor, tensor } from "@opt/core";
import { Linear } from "@opt/nn";
import "@opt/parallel";
import { SGD } from "@opt/sgd";
import { expect, it } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { fit } from "../fit";
import { evaluate, predict } from "./evaluate";

await init("js");

/** How many loops over batches began and ended. */
async function loops(ranks: number, use: string, fails: number): Promise<readonly (readonly [number, number])[]> {
  return Promise.all(
    memoryRanks(ranks).map(async (communicator) => {
      const open = { begun: 0, ended: 0 };
      async function* batches() {
        open.begun++;
        try {
          for (let i = 0; i < 4; i++) yield tensor([[i, 1]]);
        } finally {
          open.ended++;
        }
      }
      let calls = 0;
      const module = new Linear(2, 1);
      const forward = (x: Tensor) => {
        if (++calls === fails) throw new RangeError("broken");
        return module.forward(x).sum();
      };
      const optimizer = new SGD(module.namedParameters(), { lr: 0.1 });
      const stopping = {
        onStepEnd({ step }: { readonly step: number }, control: { stop: boolean }) {
          if (step === 2) control.stop = true;
        },
      };
      const callbacks = [stopping];
      const given = { data: batches, forward, compile: false, ...(ranks > 1 && { communicator }) };
      const running =
        use === "fit"
          ? fit(module, { ...given, optimizer, epochs: 2, callbacks })
          : use === "evaluate"
            ? evaluate(module, given)
            : predict(Object.assign(module, { forward }), batches);
      await running.catch(() => {});
      return [open.begun, open.ended] as const;
    }),
  );
}

it.each(
  [1, 2].flatMap((ranks) =>
    ["fit", "evaluate", "predict"].flatMap((use) => [1, 2, 9].map((fails) => [use, ranks, fails] as const)),
  ),
)("%s on %d ranks, a loss that fails in call %d", async (use, ranks, fails) => {
  for (const [begun, ended] of await loops(ranks, use, fails)) expect([begun > 0, ended]).toEqual([true, begun]);
});
