/** Complex parameters are trained as their real views, on every device. */
import { AdamW } from "@opt/adam-amsgrad";
import { compile, GradScaler, init, listDevices, parameter, type Tensor, tensor, viewAsComplex, viewAsReal } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { SGD } from "@opt/sgd";
import { beforeAll, describe, expect, it } from "vitest";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";

const PARTS = [
  [3, 4],
  [0, -1],
  [2, 0.5],
];
let weights: Tensor;
const complex = () => viewAsComplex(tensor(PARTS));
const numbers = (x: Tensor) => [...x.dataSync()];
/** |w|^2, weighted. */
const loss = (w: Tensor) => viewAsReal(w).pow(2).mul(weights).sum();

type Made = (params: Tensor[], options: object) => AdamW | NAdam | SGD;
const OPTIMIZERS: [string, Made][] = [
  ["AdamW", (params, options) => new AdamW(params, { weightDecay: 0.1, ...options })],
  ["AMSGrad", (params, options) => new AdamW(params, { amsgrad: true, ...options })],
  ["NAdam", (params, options) => new NAdam(params, options)],
  ["SGD with momentum", (params, options) => new SGD(params, { momentum: 0.9, ...options })],
];

const devices = await listDevices();
const missing = (name: string) => devices.every((device) => device.name !== name || !device.available);

describe.each(["js", "wasm", "cpu"].map((device) => [device, missing(device)] as const))(
  "on %s",
  (device, isMissing) => {
    beforeAll(async () => {
      if (isMissing) return;
      await init(device);
      weights = tensor([[1, 2]]);
    });

    describe.skipIf(isMissing).each(OPTIMIZERS)("%s", (_, make) => {
      it.each([{}, { clip: { norm: 1, value: 0.2 } }, { maximize: true }])(
        "trains it as its real view, with %j",
        (options) => {
          const [w, real] = [parameter(complex()), parameter(tensor(PARTS))];
          const [one, other] = [make([w], options), make([real], options)];
          for (let i = 0; i < 5; i++) {
            for (const o of [one, other]) o.zeroGrad();
            loss(w).backward();
            real.pow(2).mul(weights).sum().backward();
            for (const o of [one, other]) o.step();
            expect(numbers(w)).toEqual(numbers(real));
          }
          const state = one.stateDict().state["0"]!;
          const theirs = other.stateDict().state["0"]!;
          for (const [key, value] of Object.entries(theirs)) {
            if (typeof value === "number") continue;
            expect(state[key]).toMatchObject({ dtype: "c64", shape: [3] });
            expect(numbers(state[key] as Tensor)).toEqual(numbers(value));
          }
        },
      );

      it("goes on from its state, compiled and with a loss scale, beside a real parameter", () => {
        const [[w, v], [x, y]] = [0, 1].map(() => [parameter(complex()), parameter([1, 2])] as const) as [
          readonly [Tensor, Tensor],
          readonly [Tensor, Tensor],
        ];
        const [eager, other] = [make([w, v], {}), make([x, y], {})];
        const scalers = [new GradScaler({ initScale: 8 }), new GradScaler({ initScale: 8 })] as const;
        const step = (o: typeof eager, scaler: GradScaler, a: Tensor, b: Tensor) => () => {
          o.zeroGrad();
          scaler.scale(loss(a).add(b.pow(2).sum())).backward();
          scaler.step(o);
          scaler.update();
        };
        const [first, second] = [step(eager, scalers[0], w, v), step(other, scalers[1], x, y)];
        first();
        const compiled = compile(second);
        compiled();
        other.loadStateDict(other.stateDict());
        for (let i = 0; i < 5; i++) {
          first();
          compiled();
        }
        expect(numbers(x)).toEqual(numbers(w));
        expect(numbers(y)).toEqual(numbers(v));
      });
    });
  },
);
