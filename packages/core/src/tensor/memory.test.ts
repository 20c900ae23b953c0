// What is made is given back: live memory returns to its start.
import { DIFFERENTIABLE_OPS, expectCode, inputsOf } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor, zeros } from "../create";
import { keep, tidy } from "../device/scope";
import { clipGradNorm } from "../optimizer/gradients/clip";
import { noGrad } from "./tape";
import type { Tensor } from "./tensor";

const EMPTY = { bytes: 0, tensors: 0 };

/** Cases that call several ops, or make labels of their own. */
const COMPOSED = /^where (of|between)|^(at|indexPut)$|crossEntropy|gather|reshape to the same/;

describe.each(["f64", "bf16"] as const)("in %s, an op leaves only its result behind:", (dtype) => {
  it.each(DIFFERENTIABLE_OPS.filter(({ name }) => !COMPOSED.test(name)))("$name", (op) => {
    const device = new FakeDevice();
    const inputs = inputsOf(op).map(({ values, shape }) => parameter(values, { shape, dtype, device }));
    const before = device.memory();
    const plain = noGrad(() => op.run(...inputs));
    expect(device.memory().tensors).toBe(before.tensors + 1);
    plain.dispose();
    expect(device.memory()).toEqual(before);
    op.run(...inputs).dispose(); // and so does its tape
    expect(device.memory()).toEqual(before);
    const result = op.run(...inputs);
    result.backward(tensor(new Float64Array(result.size), { shape: result.shape, dtype, device }));
    result.dispose();
    for (const input of inputs) input.dispose();
    expect(device.memory().tensors, "the gradient given to backward").toBe(1);
  });
});

describe("tidy", () => {
  it("frees what was made inside, except what is returned, in objects and arrays too", () => {
    const device = new FakeDevice();
    const make = () => tensor([1], { device });
    const { a, list } = tidy(() => {
      make();
      return { a: make(), list: [make(), [make()]], other: 3 };
    });
    expect(device.memory().tensors).toBe(3);
    for (const left of [a, ...(list.flat() as Tensor[])]) left.dispose();
    expect(device.memory()).toEqual(EMPTY);
  });

  it("does not look into what is neither array nor plain object", () => {
    const device = new FakeDevice();
    class Holder {
      readonly tensor = tensor([1], { device });
    }
    expect(tidy(() => new Holder()).tensor.isDisposed).toBe(true);
  });

  it("keeps parameters, gradients and what keep is called on, from any depth", () => {
    const device = new FakeDevice();
    const kept: Tensor[] = [];
    tidy(() => {
      const outer = tensor([1], { device });
      const gradient = tensor([5], { device });
      tidy(() => {
        kept.push(keep(outer), parameter([2], { device }));
        kept[1]!.grad = gradient;
        kept[1]!.mul(outer).sum();
      });
    });
    expect(kept.map((t) => t.dataSync()[0])).toEqual([1, 2]);
    expect(kept[1]!.grad!.dataSync()[0]).toBe(5);
    expect(device.memory().tensors).toBe(3);
  });

  it("hands results of an inner tidy to the outer one", () => {
    const device = new FakeDevice();
    tidy(() => {
      tidy(() => tensor([1], { device }));
      expect(device.memory().tensors).toBe(1);
    });
    expect(device.memory()).toEqual(EMPTY);
  });

  it("frees everything when its body throws, mid-op and out of memory", () => {
    const device = new FakeDevice();
    const w = parameter(
      [
        [1, 2],
        [3, 4],
      ],
      { device },
    );
    const before = device.memory();
    expectCode("BAD_SHAPE", () =>
      tidy(() =>
        w
          .mul(w)
          .exp()
          .add(tensor([1, 2, 3], { device })),
      ),
    );
    for (let left = 0; left < 6; left++) {
      device.allocationsLeft = left;
      expectCode("OUT_OF_MEMORY", () => tidy(() => w.softmax(0).matmul(w).sum().backward()));
      device.allocationsLeft = Number.POSITIVE_INFINITY;
      w.clearGradient();
      expect(device.memory()).toEqual(before);
    }
  });

  it("leaves alone what was made before, also where it is returned", () => {
    const outer = tidy(() => {
      const before = zeros([1]);
      const same = tidy(() => before);
      expect(same).toBe(before);
      return before;
    });
    expect([...outer.dataSync()]).toEqual([0]);
  });

  it("says how to keep what it freed, and what a compiled function did", () => {
    const freed: Tensor[] = [];
    const made = () => {
      freed.push(zeros([1]).add(1));
      return zeros([1]);
    };
    tidy(made);
    compile(made)();
    expectCode("DISPOSED", () => freed[0]!.dataSync());
    expect(() => freed[0]!.dataSync()).toThrow("keep() it");
    expect(() => freed[1]!.dataSync()).toThrow("Return it from the compiled function");
  });

  it("keep rejects what is no tensor", () => {
    for (const value of [1, null, { shape: [1] }]) expectCode("BAD_ARGUMENT", () => keep(value as never));
  });

  it("rejects an asynchronous body and frees what it made", async () => {
    const device = new FakeDevice();
    expectCode("BAD_ARGUMENT", () => tidy(async () => tensor([1], { device })));
    expect(device.memory()).toEqual(EMPTY);
  });
});

/** A little network with every habit of a training loop. */
function training() {
  const device = new FakeDevice();
  const w1 = parameter(
    [
      [0.1, -0.2, 0.3],
      [0.4, 0.5, -0.6],
    ],
    { device },
  );
  const b1 = parameter([0.1, 0, -0.1], { device });
  const w2 = parameter([[0.3], [-0.4], [0.2]], { device, dtype: "bf16" });
  const x = tensor(
    [
      [1, 2],
      [3, 4],
      [5, 6],
      [7, 8],
    ],
    { device },
  );
  const forward = () => x.matmul(w1).add(b1).gelu().matmul(w2).pow(2).mean();
  const optimizer = new Momentum([w1, b1, w2], { lr: 1e-3 });
  return { device, forward, optimizer, params: [w1, b1, w2] };
}

it("a norm outside of tidy lives until the next one of the same parameters, or as long as it is kept", () => {
  const { forward, params, optimizer } = training();
  const norms = [0, 1, 2].map((step) => {
    optimizer.zeroGrad();
    tidy(() => forward().backward());
    const norm = clipGradNorm(params, 1);
    expect(clipGradNorm(params.slice(1), 1).isDisposed).toBe(false); // other parameters, another norm
    return step === 0 ? keep(norm) : norm;
  });
  expect(norms.map((norm) => norm.isDisposed)).toEqual([false, true, false]);
});

it("norms inside of tidy live to its end, also two of the same parameters", () => {
  const { forward, params } = training();
  const norms = tidy(() => {
    forward().backward();
    const both = [clipGradNorm(params, 1), clipGradNorm(params, 1)];
    expect(both.map((norm) => norm.isDisposed)).toEqual([false, false]);
    return () => both;
  })();
  expect(norms.map((norm) => norm.isDisposed)).toEqual([true, true]);
});

it("a gradient that you made yourself, outside of tidy, stays yours", () => {
  const device = new FakeDevice();
  const w = parameter([1, 2], { device });
  const gradient = tensor([3, 4], { device });
  const optimizer = new Momentum([w], { lr: 0.1 });
  for (let step = 0; step < 3; step++) {
    tidy(() => {
      w.grad = gradient; // made outside of this tidy
    });
    expect(w.grad).toBe(gradient);
    optimizer.step();
    optimizer.zeroGrad();
  }
  expect(gradient.dataSync()).toEqual(new Float32Array([3, 4]));
  w.grad = gradient;
  w.grad = w.grad.mul(2);
  expect(gradient.isDisposed).toBe(false);
});

describe("training loops return to the memory of their first step:", () => {
  it("2,000 steps", () => {
    const { device, forward, optimizer } = training();
    const step = () => {
      tidy(() => forward().backward());
      optimizer.step();
      optimizer.zeroGrad();
    };
    step();
    const after = device.memory();
    for (let i = 0; i < 1_999; i++) step();
    expect(device.memory()).toEqual(after);
  });

  it.each<[string, (parts: ReturnType<typeof training>) => void]>([
    ["losses that are never backwarded", ({ forward }) => tidy(forward).dispose()],
    [
      "losses backwarded outside of the tidy that made them",
      ({ forward }) => {
        const loss = tidy(forward);
        loss.backward();
        loss.dispose();
      },
    ],
    [
      "the closure form",
      ({ forward, optimizer }) => {
        optimizer
          .step(() =>
            tidy(() => {
              const loss = forward();
              loss.backward();
              return loss;
            }),
          )
          .dispose();
      },
    ],
    [
      "gradients accumulated over two losses",
      ({ forward, optimizer }) => {
        tidy(() => forward().backward());
        tidy(() => forward().backward());
        optimizer.step();
      },
    ],
    [
      "a step that is rejected",
      ({ forward, optimizer, device }) => {
        tidy(() => forward().backward());
        device.allocationsLeft = 0; // the bf16 gradient has to be widened
        expectCode("OUT_OF_MEMORY", () => optimizer.step());
        device.allocationsLeft = Number.POSITIVE_INFINITY;
      },
    ],
    [
      "state that is saved and loaded",
      ({ forward, optimizer }) => {
        tidy(() => forward().backward());
        optimizer.step();
        optimizer.loadStateDict(optimizer.stateDict());
      },
    ],
    [
      "gradients set to null by hand",
      ({ forward, optimizer, params }) => {
        tidy(() => forward().backward());
        optimizer.step();
        for (const param of params) param.grad = null;
      },
    ],
    [
      "gradients scaled by hand, outside of tidy",
      ({ forward, optimizer, params }) => {
        tidy(() => forward().backward());
        for (const param of params) param.grad = param.grad!.mul(0.5);
        optimizer.step();
      },
    ],
    [
      "gradients made by hand inside of tidy",
      ({ optimizer, params, device }) => {
        tidy(() => {
          for (const { dtype, shape } of params) zeros(shape, { device, dtype });
          for (const param of params) param.grad = zeros(param.shape, { device, dtype: param.dtype });
        });
        optimizer.step();
      },
    ],
    [
      "clipping inside of tidy",
      ({ forward, optimizer, params }) => {
        tidy(() => {
          forward().backward();
          clipGradNorm(params, 1);
          optimizer.step();
        });
      },
    ],
    [
      "clipping outside of tidy",
      ({ forward, optimizer, params }) => {
        tidy(() => forward().backward());
        expect(clipGradNorm(params, 1).dataSync()).toHaveLength(1);
        optimizer.step();
      },
    ],
    [
      "zeroed instead of freed gradients",
      ({ forward, optimizer }) => {
        tidy(() => forward().backward());
        optimizer.zeroGrad({ setToNull: false });
      },
    ],
  ])("%s", (_, step) => {
    const parts = training();
    const run = () => {
      step(parts);
      parts.optimizer.zeroGrad();
    };
    for (let i = 0; i < 2; i++) run();
    const after = parts.device.memory();
    for (let i = 0; i < 20; i++) run();
    expect(parts.device.memory()).toEqual(after);
  });
});
