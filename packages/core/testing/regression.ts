/** A small regression whose steps are compiled, or throw. */
import { type DType, Generator, parameter, randn, type Tensor } from "../src/index";
import type { FakeDevice } from "./fake-backend";
import { Momentum } from "./momentum";

/** A regression with every part that programs are made of. */
export function parts(device: FakeDevice, dtype: DType = "f32") {
  const seeded = (seed: number) => ({ device, generator: new Generator(seed) });
  const w = parameter([0.5, -1, 2], { device, dtype });
  const b = parameter([0.25], { device, dtype });
  const x = randn([4, 3], { ...seeded(1), dtype });
  const optimizer = new Momentum([w, b], { lr: 0.05 });
  const loss = () => x.mul(w).sum(1).add(b).pow(2).mean();
  const values = (t: Tensor | null | undefined) => (t ? [...t.dataSync()] : null);
  const watched = () => ({
    w: values(w),
    b: values(b),
    gradients: [values(w.grad), values(b.grad)],
    state: Object.values(optimizer.stateDict().state).map(({ step, ...tensors }) => [
      step,
      ...Object.values(tensors).map((t) => values(t as Tensor)),
    ]),
  });
  return { device, w, b, x, optimizer, loss, watched, generator: new Generator(7), seeded };
}

export type Parts = ReturnType<typeof parts>;

/** A step of it. */
export function train({ optimizer }: Parts, loss: () => Tensor): Tensor {
  const result = loss();
  result.backward();
  optimizer.step();
  optimizer.zeroGrad();
  return result;
}
