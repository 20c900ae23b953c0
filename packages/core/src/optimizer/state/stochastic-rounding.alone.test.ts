// The option `stochasticRounding`: 16-bit parameters without float32 copies, eager, compiled, resumed, in groups and parts.
import { expectCode } from "@opt/testkit";
import { beforeAll, describe, expect, it } from "vitest";
import { compile } from "../../compile/compile";
import { parameter, randn, tensor } from "../../create";
import { tidy } from "../../device/scope";
import { GradScaler } from "../../loss-scaling/scaler";
import { gatherSparse } from "../../rows/gather-sparse";
import { span } from "../../tensor/span";
import type { Tensor } from "../../tensor/tensor";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum, type MomentumOptions } from "../../testing/momentum";
import type { DType } from "../../values/dtype";
import { Generator } from "../../values/generator";
import type { GroupOptions } from "../algorithm";
import { enableQ8 } from "./packed-state";
import { enableStochasticRounding } from "./stochastic-rounding";

type Options = Partial<MomentumOptions> & GroupOptions;

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
  const values = (seed: number, size = SIZE) => randn([size], { generator: new Generator(seed) }).dataSync();
  const bits = (x: Tensor) => [...x.bytesSync()];

  function parts(options: Options = {}, dtype: DType = "bf16", size = SIZE) {
    const device = new FakeDevice();
    const [w, b] = ["w", "b"].map((name) => parameter(values(1, size), { dtype, device, name })) as [Tensor, Tensor];
    const optimizer = new Momentum([w, b], { lr: 1e-3, stochasticRounding: true, ...options });
    let steps = 0;
    const give = (scale = 1) => {
      for (const p of [w, b])
        p.grad = tensor(
          values(7 + steps, size).map((x) => x * scale),
          { dtype, device },
        );
      steps++;
    };
    const train = (count: number) => {
      for (let i = 0; i < count; i++) {
        give();
        optimizer.step();
      }
    };
    return { device, w, b, optimizer, give, train, all: () => [...bits(w), ...bits(b)] };
  }

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
      const other = parts({ stochasticRounding: { seed: 1 } }, dtype);
      other.train(1);
      optimizer.step();
      expect(bits(other.w)).not.toEqual(bits(w));
    },
  );

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

  it.each<Options>([{}, { stochasticRounding: { seed: 9 }, stateDType: "bf16" }])(
    "resumes in its bits, with %o",
    (options) => {
      const [whole, resumed] = [parts(options), parts()];
      whole.train(3);
      resumed.train(3);
      resumed.optimizer.loadStateDict(whole.optimizer.stateDict());
      resumed.w.set(whole.w.dataSync());
      resumed.b.set(whole.b.dataSync());
      for (const each of [whole, resumed]) each.train(4);
      expect(resumed.all()).toEqual(whole.all());
    },
  );

  it("draws anew in each compiled step, as eager steps do, and follows the option", () => {
    const [eager, compiled] = [parts(), parts()];
    for (const each of [eager, compiled]) each.give();
    const step = compile(() => compiled.optimizer.step());
    for (let i = 0; i < 4; i++) {
      step();
      eager.optimizer.step();
    }
    expect(compiled.all()).toEqual(eager.all());
    for (const { optimizer } of [eager, compiled]) optimizer.groups[0]!.stochasticRounding = { seed: 5 };
    for (const one of [step, () => eager.optimizer.step()]) one();
    expect(compiled.all()).toEqual(eager.all());
    for (const { optimizer } of [eager, compiled]) optimizer.groups[0]!.stochasticRounding = false;
    for (let i = 0; i < 3; i++) for (const one of [step, () => eager.optimizer.step()]) one();
    expect(compiled.all()).toEqual(eager.all());
  });

  it("steps parts of a parameter as it steps all of it", () => {
    const [whole, cut] = [parts(), parts()];
    const split = [0, 100, 101, SIZE];
    for (let i = 0; i < 2; i++) whole.train(1);
    const pieces = split.slice(1).map((end, i) => {
      const piece = span(cut.w, split[i]!, end);
      piece.requiresGrad = true;
      return piece;
    });
    const optimizers = pieces.map((piece) => new Momentum([piece], { lr: 1e-3, stochasticRounding: true }));
    for (let i = 0; i < 2; i++) {
      cut.give();
      pieces.forEach((piece, k) => {
        piece.grad = span(cut.w.grad!, split[k]!, split[k + 1]!);
        optimizers[k]!.step();
      });
    }
    expect(bits(cut.w)).toEqual(bits(whole.w));
  });

  it("keeps all bits where GradScaler skips, and counts no draw", () => {
    const [even, skipped] = [parts(), parts()];
    const scaler = new GradScaler({ initScale: 4, backoffFactor: 0.5 });
    const step = (scale: number) => {
      scaler.scale(tensor(1, { device: skipped.device }));
      skipped.give(scale);
      scaler.step(skipped.optimizer);
      scaler.update();
    };
    step(4);
    const before = skipped.all();
    const grad = skipped.w.grad!.dataSync();
    skipped.w.grad = tensor(
      grad.map((x, i) => (i === 5 ? Number.POSITIVE_INFINITY : x)),
      {
        dtype: "bf16",
        device: skipped.device,
      },
    );
    scaler.step(skipped.optimizer);
    scaler.update();
    expect(skipped.all()).toEqual(before);
    step(2);
    even.train(2);
    expect(skipped.all()).toEqual(even.all());
  });

  it("goes with state in 8 bits, clipping and penalties, compiled too", () => {
    const options: Options = { stateDType: "q8", clip: { norm: 1, value: 0.1 } };
    const [eager, compiled] = [parts(options, "bf16", 5000), parts(options, "bf16", 5000)];
    for (const each of [eager, compiled]) each.give();
    const step = compile(() => compiled.optimizer.step());
    for (let i = 0; i < 4; i++) {
      step();
      eager.optimizer.step();
    }
    expect(compiled.all()).toEqual(eager.all());
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
      expect(on.all()).toEqual(off.all());
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
