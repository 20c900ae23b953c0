/** jax-js on a device of its own: Opt in its arrays, AdamW as optax composes it there, and as one compiled function. */
import { blockUntilReady, type Device, defaultDevice, init, jit, numpy as np, tree } from "@jax-js/jax";
import { applyUpdates, gradientTransformation } from "@opt/jax-js";
import { type Contender, timed } from "../contender";
import { optimizerOf } from "../opt";
import { firstParameters, gradients, type OptimizerWork } from "../optimizer-work";

type Trees = np.Array[];

/** One step: parameters, state and gradients are consumed. */
interface Stepper<State> {
  init(params: Trees): State;
  step(params: Trees, state: State, grads: Trees): [Trees, State];
}

const LARGEST = 2 ** 24;

function contender<State>(
  name: string,
  device: Device,
  tolerance: number,
  make: (optimizer: OptimizerWork["optimizer"]) => Stepper<State> | string,
): Contender<OptimizerWork> {
  return {
    name: `${name} ${device}`,
    tolerance,
    async open({ optimizer, tensors, size, rows }) {
      if (rows !== undefined) return "written for vectors";
      if (tensors * size > LARGEST || tensors > 100) return "too slow to be of interest at this size";
      const stepper = make(optimizer);
      if (typeof stepper === "string") return stepper;
      if (!(await init(device)).includes(device)) return `jax-js has no ${device} here`;
      defaultDevice(device);
      const arrays = (data: Float32Array) =>
        Array.from({ length: tensors }, () => np.array(data as Float32Array<ArrayBuffer>));
      const grads = arrays(gradients(size));
      let params = arrays(firstParameters(size));
      let state = stepper.init(tree.ref(params));
      return {
        run: (steps) =>
          timed(steps, async () => {
            [params, state] = stepper.step(params, state, tree.ref(grads));
            await blockUntilReady([params, state] as never);
          }),
        result: async (count) => [...((await params[0]!.ref.data()) as Float32Array).subarray(0, count)],
        async close() {
          for (const each of [params, state, grads]) tree.dispose(each as Trees);
        },
      };
    },
  };
}

/** Opt's rule in jax-js' arrays: new parameters at once, or updates that are then added. */
export const optInJaxJs = (device: Device, way: "step" | "update" = "step") =>
  contender(`opt in jax-js, ${way}`, device, 1e-5, (name) => {
    const tx = gradientTransformation(...optimizerOf(name));
    return {
      init: (params) => tx.init(params),
      step: (params, state, grads) => {
        if (way === "step") return tx.step(grads, state, params);
        const [updates, next] = tx.update(grads, state, tree.ref(params));
        return [applyUpdates(params, updates), next];
      },
    };
  });

interface Moments {
  readonly step: number;
  readonly mu: Trees;
  readonly nu: Trees;
}

const zeros = (params: Trees): Moments => {
  const like = () => params.map(({ shape }) => np.zeros(shape));
  const made = { step: 0, mu: like(), nu: like() };
  tree.dispose(params);
  return made;
};

const [LR, BETA1, BETA2, EPS, DECAY] = [1e-3, 0.9, 0.999, 1e-8, 1e-2];

/** As optax chains it, one transformation after the other over the tree: moments, their corrections, decay, learning rate, sum. */
export const optaxInJaxJs = (device: Device) =>
  contender<Moments>("jax-js optax AdamW", device, 1e-4, (name) =>
    name !== "AdamW"
      ? "written for AdamW"
      : {
          init: zeros,
          step(params, { step: before, ...moments }, grads) {
            const step = before + 1;
            const squares = grads.map((g) => np.square(g.ref));
            const average = (x: np.Array, m: np.Array, beta: number) => x.mul(1 - beta).add(m.mul(beta));
            const mu = grads.map((g, i) => average(g, moments.mu[i]!, BETA1));
            const nu = squares.map((square, i) => average(square, moments.nu[i]!, BETA2));
            const muHat = mu.map((m) => m.ref.mul(1 / (1 - BETA1 ** step)));
            const nuHat = nu.map((v) => v.ref.mul(1 / (1 - BETA2 ** step)));
            const scaled = muHat.map((m, i) => m.div(np.sqrt(nuHat[i]!).add(EPS)));
            const decayed = scaled.map((u, i) => u.add(params[i]!.ref.mul(DECAY)));
            const updates = decayed.map((u) => u.mul(-LR));
            return [params.map((p, i) => p.add(updates[i]!)), { step, mu, nu }];
          },
        },
  );

/** AdamW as one compiled function. */
export const jaxJs = (device: Device) =>
  contender<Moments>("jax-js jit AdamW", device, 1e-4, (name) => {
    if (name !== "AdamW") return "written for AdamW";
    const update = jit(
      (p: np.Array, m: np.Array, v: np.Array, g: np.Array, stepSize: np.Array, correction: np.Array) => {
        const mu = m.mul(BETA1).add(g.ref.mul(1 - BETA1));
        const nu = v.mul(BETA2).add(np.square(g).mul(1 - BETA2));
        const denominator = np.sqrt(nu.ref).mul(correction).add(EPS);
        return [p.mul(1 - LR * DECAY).sub(stepSize.mul(mu.ref.div(denominator))), mu, nu];
      },
    );
    return {
      init: zeros,
      step(params, { step: before, mu, nu }, grads) {
        const step = before + 1;
        const stepSize = np.array(LR / (1 - BETA1 ** step));
        const correction = np.array(1 / Math.sqrt(1 - BETA2 ** step));
        const results = params.map(
          (p, i) =>
            update(p, mu[i]!, nu[i]!, grads[i]!, stepSize.ref, correction.ref) as [np.Array, np.Array, np.Array],
        );
        stepSize.dispose();
        correction.dispose();
        return [results.map(([p]) => p), { step, mu: results.map(([, m]) => m), nu: results.map(([, , v]) => v) }];
      },
    };
  });
