// All modifications together, crosswise with what steps have besides: dtypes, compiled steps, skipped steps, resumed state, schedules.
import "@opt/kernels-cpu";
import {
  compile,
  type Device,
  type DType,
  enableStochasticRounding,
  Generator,
  GradScaler,
  type GroupOptions,
  parameter,
  randn,
  type Tensor,
  tensor,
} from "@opt/core";
import { eachDevice } from "@opt/testkit";
import { expect, it } from "vitest";
import { AdamW } from "./index";

enableStochasticRounding();
const SHAPES = [[4, 3], [3], [], [0, 2], [2, 2, 2]];

await eachDevice(
  ({ name: device }: Device) => {
    const at = (shape: readonly number[], dtype: DType, seed: number) =>
      randn([...shape], { generator: new Generator(seed), device: "js" })
        .to(dtype)
        .to(device);

    const start = (dtype: DType, more: GroupOptions = {}) => {
      const params = SHAPES.map((shape, k) => parameter(at(shape, dtype, k)));
      const optimizer = new AdamW(params, {
        lr: 0.05,
        weightDecay: 0.1,
        decay: "cautious",
        cautious: true,
        mars: { gamma: 0.1 },
        hyperball: true,
        centralize: true,
        ...more,
      });
      const setGradients = (t: number, scale = 1) => {
        for (const [k, param] of params.entries())
          param.grad = at(SHAPES[k]!, dtype, 10 * t + k)
            .mul(scale)
            .to(dtype);
      };
      return { params, optimizer, setGradients, words: () => params.map((param) => [...param.dataSync()]) };
    };

    it.each<DType>(["f32", "f64", "bf16", "f16"])(
      "%s: compiled, and resumed in the middle, the words of eager",
      (dtype) => {
        const [eager, compiled, resumed] = [start(dtype), start(dtype), start(dtype)];
        const step = compile(() => compiled.optimizer.step());
        for (let t = 1; t <= 6; t++) {
          for (const each of [eager, compiled, resumed]) each.setGradients(t);
          eager.optimizer.step();
          step();
          if (t > 3) resumed.optimizer.step();
          if (t === 3) {
            for (const [k, param] of resumed.params.entries()) param.set(eager.params[k]!.detach());
            resumed.optimizer.loadStateDict(eager.optimizer.stateDict());
          }
          expect(compiled.words()).toEqual(eager.words());
        }
        expect(eager.words().flat().every(Number.isFinite)).toBe(true);
        expect(resumed.words()).toEqual(eager.words());
      },
    );

    it("a compiled step that is skipped changes no state", () => {
      const [plain, scaled] = [start("f32"), start("f32")];
      const scaler = new GradScaler({ initScale: 4, growthInterval: 1000, backoffFactor: 0.5 });
      const step = compile(() => {
        scaler.scale(tensor(1, { device })).dispose();
        scaler.step(scaled.optimizer);
        scaler.update();
      });
      for (let t = 1; t <= 5; t++) {
        if (t === 3) {
          scaled.setGradients(99);
          scaled.params[0]!.grad = (scaled.params[0]!.grad as Tensor).mul(Number.POSITIVE_INFINITY);
          step();
        }
        plain.setGradients(t);
        scaled.setGradients(t, t < 3 ? 4 : 2);
        plain.optimizer.step();
        step();
        expect(scaled.words()).toEqual(plain.words());
      }
    });

    it("stochastic rounding and bf16 state: compiled has the words of eager", () => {
      const options: GroupOptions = { stochasticRounding: { seed: 5 }, stateDType: "bf16" };
      const [eager, compiled] = [start("bf16", options), start("bf16", options)];
      const step = compile(() => compiled.optimizer.step());
      for (let t = 1; t <= 4; t++) {
        for (const each of [eager, compiled]) each.setGradients(t);
        eager.optimizer.step();
        step();
      }
      expect(compiled.words()).toEqual(eager.words());
    });

    it("a schedule, absent gradients and options that are switched: compiled has the words of eager", () => {
      const [eager, compiled] = [start("f32"), start("f32")];
      const step = compile(() => compiled.optimizer.step());
      for (let t = 1; t <= 6; t++) {
        for (const { optimizer, params, setGradients } of [eager, compiled]) {
          const group = optimizer.groups[0]!;
          setGradients(t);
          if (t % 2 === 1) params[0]!.grad = null;
          group.lr = 0.05 / t;
          if (t === 4) group.cautious = false;
          if (t === 5) group.clip = { norm: 0.1 };
          if (t === 6) group.mars = null;
        }
        eager.optimizer.step();
        step();
        expect(compiled.words()).toEqual(eager.words());
      }
    });
  },
  ["js", "cpu"],
);
