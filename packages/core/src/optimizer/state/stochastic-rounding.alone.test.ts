// The option `stochasticRounding`: 16-bit parameters without float32 copies, eager, compiled, resumed, in groups and parts.
import { expectCode } from "@opt/testkit";
import { beforeAll, describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { Momentum } from "../../../testing/momentum";
import { type TrainedOptions, trained } from "../../../testing/trained";
import { compile } from "../../compile/compile";
import { parameter, randn, tensor } from "../../create";
import { tidy } from "../../device/scope";
import { Generator } from "../../random/generator";
import { gatherSparse } from "../../row-sparse/gather-sparse";
import { span } from "../../tensor/span";
import type { Tensor } from "../../tensor/tensor";
import type { DType } from "../../values/dtype";
import { enableQ8 } from "./packed-state";
import { enableStochasticRounding } from "./stochastic-rounding";

it("asks for enableStochasticRounding", () => {
  const make = (option: unknown) => () => new Momentum([parameter([1])], { stochasticRounding: option as boolean });
  expectCode("BAD_ARGUMENT", make(true));
  expect(make(true)).toThrow("enableStochasticRounding()");
  make(false)();
});

describe("stochasticRounding", () => {
  beforeAll(() => {
    enableQ8();
    enableStochasticRounding();
  });

  const SIZE = 300;
  const bits = (x: Tensor) => [...x.bytesSync()];

  const parts = (options: TrainedOptions = {}, dtype: DType = "bf16") =>
    trained({ stochasticRounding: true, ...options }, dtype, SIZE);

  it.each<DType>(["bf16", "f16"])(
    "steps %s in one launch, without a float32 copy, and each parameter by its own draws",
    (dtype) => {
      const { device, w, b, optimizer, train } = parts({}, dtype);
      train(1);
      expect(Object.keys(optimizer.stateDict().state.w!)).toEqual(["step", "velocity"]);
      device.launches.length = 0;
      optimizer.step();
      expect(device.launches).toEqual(["rule"]);
      expect(bits(w)).not.toEqual(bits(b));
    },
  );

  it("draws by the seed: 0 by default", () => {
    const drawn = (stochasticRounding: true | { seed: number }) => {
      const { w, train } = parts({ stochasticRounding });
      train(2);
      return bits(w);
    };
    expect(drawn({ seed: 0 })).toEqual(drawn(true));
    expect(drawn({ seed: 1 })).not.toEqual(drawn(true));
  });

  it("steps a parameter with a float32 copy beside one without, each as alone", () => {
    const stepped = (names: readonly ("w" | "b")[]) => {
      const run = parts({ stochasticRounding: false });
      const step = (given: readonly ("w" | "b")[]) => {
        for (const name of ["w", "b"] as const) {
          const gradient = () => tensor(run[name].to("f32").dataSync(), { dtype: "bf16", device: run.device });
          run[name].grad = given.includes(name) ? gradient() : null;
        }
        run.optimizer.step();
      };
      step(names.filter((name) => name === "w")); // its copy is made now
      run.optimizer.groups[0]!.stochasticRounding = true;
      for (let i = 0; i < 2; i++) step(names);
      return run;
    };
    const [both, first, second] = [stepped(["w", "b"]), stepped(["w"]), stepped(["b"])];
    expect(Object.keys(both.optimizer.stateDict().state.b!)).not.toContain("master_param");
    expect([bits(both.w), bits(both.b)]).toEqual([bits(first.w), bits(second.b)]);
  });

  it("moves by steps that are far below the gap, on average as float32 does", () => {
    const device = new FakeDevice();
    const w = parameter(new Float32Array(20_000).fill(1), { dtype: "bf16", device });
    const optimizer = new Momentum([w], { lr: 1e-4, momentum: 0, stochasticRounding: { seed: 3 } });
    w.grad = tensor(new Float32Array(20_000).fill(1), { dtype: "bf16", device });
    for (let i = 0; i < 50; i++) optimizer.step();
    // 50 steps of 1e-4, each a draw of 1 in 40 to move by 2^-8: the mean of all is off by less than 1e-4.
    const mean = [...w.dataSync()].reduce((sum, x) => sum + x, 0) / 20_000;
    expect(Math.abs(mean - 0.995)).toBeLessThan(3e-4);
  });

  it("draws anew in each compiled step, as eager steps do, and follows the option", () => {
    const [eager, compiled] = [parts(), parts()];
    for (const each of [eager, compiled]) each.give();
    const step = compile(() => compiled.optimizer.step());
    for (let i = 0; i < 4; i++) {
      step();
      eager.optimizer.step();
    }
    expect(compiled.words()).toEqual(eager.words());
    for (const { optimizer } of [eager, compiled]) optimizer.groups[0]!.stochasticRounding = { seed: 5 };
    for (const one of [step, () => eager.optimizer.step()]) one();
    expect(compiled.words()).toEqual(eager.words());
    for (const { optimizer } of [eager, compiled]) optimizer.groups[0]!.stochasticRounding = false;
    for (let i = 0; i < 3; i++) for (const one of [step, () => eager.optimizer.step()]) one();
    expect(compiled.words()).toEqual(eager.words());
  });

  it("steps parts of a parameter as it steps all of it", () => {
    const [whole, cut] = [parts(), parts()];
    const split = [0, 100, 101, SIZE];
    const pieces = split.slice(1).map((end, i) => {
      const piece = span(cut.w, split[i]!, end);
      piece.requiresGrad = true;
      return piece;
    });
    const optimizers = pieces.map((piece) => new Momentum([piece], { lr: 1e-3, stochasticRounding: true }));
    for (let i = 0; i < 2; i++) {
      whole.give();
      whole.optimizer.step();
      cut.w.grad = tensor(whole.w.grad!.dataSync(), { dtype: "bf16", device: cut.device });
      pieces.forEach((piece, k) => {
        piece.grad = span(cut.w.grad!, split[k]!, split[k + 1]!);
        optimizers[k]!.step();
      });
    }
    expect(bits(cut.w)).toEqual(bits(whole.w));
  });

  it("gives rows of a lazy step the draws of a dense one", () => {
    const [dense, lazy] = [false, true].map((lazyMode) => {
      const table = parameter(randn([6, 40], { generator: new Generator(2) }).to("bf16"));
      const optimizer = new Momentum([table], { lr: 1e-3, lazyMode, stochasticRounding: true });
      for (let i = 0; i < 3; i++) {
        tidy(() =>
          gatherSparse(table, tensor([1, 4, 1], { dtype: "i32" }))
            .to("f32")
            .pow(2)
            .sum()
            .backward(),
        );
        optimizer.step();
        optimizer.zeroGrad();
      }
      return table;
    }) as [Tensor, Tensor];
    const row = (x: Tensor, i: number) => bits(x).slice(i * 80, (i + 1) * 80);
    for (const i of [1, 4]) expect(row(lazy, i)).toEqual(row(dense, i));
  });

  it("leaves float32 and float64 as they are without it", () => {
    for (const dtype of ["f32", "f64"] as const) {
      const [on, off] = [parts({}, dtype), parts({ stochasticRounding: false }, dtype)];
      for (const each of [on, off]) each.train(2);
      expect(on.words()).toEqual(off.words());
    }
  });

  it("is asked from the first step on: a float32 copy that is there is stepped, and none is loaded", () => {
    const { optimizer, train } = parts({ stochasticRounding: false });
    train(1);
    optimizer.groups[0]!.stochasticRounding = true;
    train(1);
    const saved = optimizer.stateDict();
    expect(Object.keys(saved.state.w!)).toEqual(["step", "velocity", "master_param"]);
    const loaded = parts();
    loaded.optimizer.loadStateDict(saved);
    loaded.train(1);
    expect(Object.keys(loaded.optimizer.stateDict().state.w!)).toEqual(["step", "velocity"]);
    loaded.optimizer.groups[0]!.stochasticRounding = false;
    loaded.train(1);
    expect(Object.keys(loaded.optimizer.stateDict().state.w!)).toEqual(["step", "velocity", "master_param"]);
  });

  it.each<[unknown, string]>([
    [1, "must be true, false or { seed }"],
    [null, "must be true, false or { seed }"],
    [{ seed: -1 }, "stochasticRounding.seed must be a whole number"],
    [{ seed: 0.5 }, "stochasticRounding.seed must be a whole number"],
    [{}, "stochasticRounding.seed must be a whole number"],
    [{ sed: 1 }, "seed"],
  ])("rejects %j", (option, message) => {
    const make = () => new Momentum([parameter([1])], { stochasticRounding: option as boolean });
    expectCode("BAD_ARGUMENT", make);
    expect(make).toThrow(message);
  });
});
