// Programs around compiled functions: each call equals the function, word for word.
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { type Parts, parts, train } from "../../testing/regression";
import {
  type CompileOptions,
  clipGradNorm,
  compile,
  type DType,
  ExponentialMovingAverage,
  init,
  less,
  noGrad,
  rand,
  randn,
  type Tensor,
  tidy,
  where,
  zeros,
} from "../index";
import { StepLR } from "../schedules";

await init("js"); // loads the passes

/** What a program does in each iteration: `step` is compiled, `before` and `after` are not. */
interface Program {
  readonly step: () => unknown;
  readonly before?: (i: number) => void;
  readonly after?: (i: number) => void;
  readonly watched: () => Record<string, unknown>;
}

function changedInAndOut(p: Parts): Program {
  const first = p.w.detach().clone();
  p.optimizer.groups[0]!.lr = 1e-4; // too small a step for 16 bits: the master copy's digits are all that moves
  return {
    step: () => {
      noGrad(() => p.w.set(first));
      return train(p, p.loss);
    },
    after: (i) => {
      if (i === 2) p.w.set([7, 8, 9]);
    },
    watched: p.watched,
  };
}

const programs: Record<string, (p: Parts) => Program> = {
  "a step": (p) => ({ step: () => train(p, p.loss), watched: p.watched }),
  "two steps in one body": (p) => ({
    step: () => {
      train(p, p.loss);
      train(p, p.loss);
    },
    watched: p.watched,
  }),
  "two optimizers that take turns": (p) => {
    const other = new Momentum([p.w], { lr: 0.01, averaged: true });
    return {
      step: () => {
        p.loss().backward();
        p.optimizer.step();
        other.step();
        p.optimizer.zeroGrad();
      },
      watched: () => ({ ...p.watched(), other: other.stateDict().state[0]?.step }),
    };
  },
  "zeroGrad first": (p) => ({
    step: () => {
      p.optimizer.zeroGrad();
      p.loss().backward();
      p.optimizer.step();
    },
    watched: p.watched,
  }),
  "zeroGrad in place": (p) => ({
    step: () => {
      p.loss().backward();
      p.optimizer.step();
      p.optimizer.zeroGrad({ setToNull: false });
    },
    before: (i) => {
      if (i > 0) return;
      p.loss().backward();
      p.optimizer.zeroGrad({ setToNull: false });
    },
    watched: p.watched,
  }),
  "gradients accumulated over two losses": (p) => ({
    step: () => {
      p.loss().backward();
      p.loss().mul(0.5).backward();
      p.optimizer.step();
      p.optimizer.zeroGrad();
    },
    watched: p.watched,
  }),
  "gradients accumulated over replays, stepped outside": (p) => ({
    step: () => p.loss().backward(),
    before: (i) => {
      if (i === 0) p.loss().backward();
    },
    after: (i) => {
      if (i % 2 === 0) return;
      p.optimizer.step();
      p.optimizer.zeroGrad({ setToNull: false });
    },
    watched: p.watched,
  }),
  "clipped gradients": (p) => ({
    step: () => {
      p.loss().backward();
      const norm = clipGradNorm([p.w, p.b], 0.5);
      p.optimizer.step();
      p.optimizer.zeroGrad();
      return norm;
    },
    watched: p.watched,
  }),
  "gradients scaled by hand": (p) => ({
    step: () => {
      p.loss().backward();
      p.w.grad = p.w.grad!.mul(0.5);
      p.optimizer.step();
      p.optimizer.zeroGrad();
    },
    watched: p.watched,
  }),
  "a parameter without a gradient": (p) => ({
    step: () => train(p, () => p.x.mul(p.w).sum(1).pow(2).mean()),
    watched: p.watched,
  }),
  "the closure form": (p) => ({
    step: () => {
      const loss = p.optimizer.step(() => {
        p.optimizer.zeroGrad();
        const loss = p.loss();
        loss.backward();
        return loss;
      });
      return loss;
    },
    watched: p.watched,
  }),
  "noise drawn inside": (p) => ({
    step: () =>
      train(p, () => {
        const noise = randn([4, 3], { device: p.device, generator: p.generator, dtype: p.x.dtype });
        return p.x.add(noise).mul(p.w).sum(1).add(p.b).pow(2).mean();
      }),
    after: () => p.generator.nextUint32(),
    watched: () => ({ ...p.watched(), drawn: p.generator.stateDict() }),
  }),
  "a dropout mask": (p) => ({
    step: () =>
      train(p, () => {
        const mask = rand([4, 3], { device: p.device, generator: p.generator });
        return where(less(mask, 0.5), p.x.mul(2), 0).mul(p.w).sum(1).add(p.b).pow(2).mean();
      }),
    watched: () => ({ ...p.watched(), drawn: p.generator.stateDict() }),
  }),
  "data and weights set between": (p) => ({
    step: () => train(p, p.loss),
    before: (i) => {
      p.x.set(randn([4, 3], { ...p.seeded(i + 2), dtype: p.x.dtype }));
      if (i === 2) p.w.set([1, 0.3, -0.7]);
      if (i === 3) p.w.reshape([3, 1]).set([[0.1], [0.2], [0.3]]);
    },
    watched: p.watched,
  }),
  "weights changed inside": (p) => ({
    step: () => {
      train(p, p.loss);
      noGrad(() => p.w.set(p.w.minimum(0.5)));
      return train(p, p.loss);
    },
    watched: p.watched,
  }),
  "weights changed inside, and outside in between": changedInAndOut,
  "weights changed inside before a hook, and outside in between": (p) => {
    p.optimizer.on("beforeStep", () => {});
    return changedInAndOut(p);
  },
  "weights changed inside between two steps, before a hook": (p) => {
    p.optimizer.on("beforeStep", () => {});
    return {
      step: () => {
        p.loss().backward();
        p.optimizer.step();
        noGrad(() => p.w.set(p.w.mul(0.5)));
        p.optimizer.step();
        p.optimizer.zeroGrad();
      },
      watched: p.watched,
    };
  },
  "weights changed by a hook, between two steps": (p) => {
    p.optimizer.on("afterStep", () => {
      tidy(() => noGrad(() => p.w.set(p.w.mul(0.5))));
    });
    return {
      step: () => {
        train(p, p.loss);
        return train(p, p.loss);
      },
      watched: p.watched,
    };
  },
  "data changed inside": (p) => ({
    step: () => {
      p.x.set(p.x.mul(0.9));
      return train(p, p.loss);
    },
    watched: p.watched,
  }),
  "a schedule between": (p) => {
    const schedule = new StepLR(p.optimizer, { stepSize: 2, gamma: 0.5 });
    return { step: () => train(p, p.loss), after: () => schedule.step(), watched: p.watched };
  },
  "hooks: an average, a schedule, a count": (p) => {
    const average = zeros([3], { device: p.device, dtype: p.w.dtype });
    const schedule = new StepLR(p.optimizer, { stepSize: 2, gamma: 0.5 });
    let count = 0;
    p.optimizer.on("beforeStep", () => count++);
    p.optimizer.on("afterStep", () => {
      tidy(() => noGrad(() => average.set(average.mul(0.9).add(p.w.mul(0.1 * count)))));
      schedule.step();
    });
    return {
      step: () => {
        train(p, p.loss);
        return train(p, p.loss);
      },
      watched: () => ({ ...p.watched(), count, average: [...average.dataSync()] }),
    };
  },
  "an average that a hook updates": (p) => {
    const average = new ExponentialMovingAverage([p.w], { decay: 0.5 });
    average.update();
    p.optimizer.on("afterStep", () => average.update());
    return {
      step: () => train(p, p.loss),
      watched: () => {
        const { n_averaged, "module.0": value } = average.stateDict();
        return { ...p.watched(), n_averaged, average: [...value!.dataSync()] };
      },
    };
  },
  "steps run one by one in between": (p) => ({
    step: () => train(p, p.loss),
    after: () => {
      train(p, p.loss).dispose();
    },
    watched: p.watched,
  }),
  "the result in a computation of its own": (p) => {
    const seen: number[] = [];
    return { step: () => train(p, p.loss), watched: () => ({ ...p.watched(), seen }) };
  },
};

const ITERATIONS = 12;

/** Each iteration's watched values and results, eager or compiled. */
function run(make: (p: Parts) => Program, dtype: DType, options: CompileOptions | null): unknown[] {
  const { step, before, after, watched } = make(parts(new FakeDevice(), dtype));
  const log: unknown[] = [];
  const called = options === null ? () => tidy(step) : compile(step, options);
  for (let i = 0; i < ITERATIONS; i++) {
    before?.(i);
    const result = called();
    log.push({ ...watched(), result: (result as Tensor | undefined)?.dataSync?.() });
    after?.(i);
  }
  return log;
}

describe.each(["f32", "bf16"] as const)("compiled in %s equals eager:", (dtype) => {
  it.each(Object.entries(programs))("%s", (_, make) => {
    const eager = run(make, dtype, null);
    expect(run(make, dtype, {})).toEqual(eager);
    expect(run(make, dtype, { passes: false })).toEqual(eager);
    expect(run(make, dtype, { check: "always" })).toEqual(eager);
    expect(run(make, dtype, { check: "never" })).toEqual(eager);
  });
});
