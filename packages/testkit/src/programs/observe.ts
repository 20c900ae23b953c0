/** What can be seen of a running program between its rounds. */
import { type DType, RowSparse, type Tensor } from "@opt/core";
import type { Id } from "./program";
import type { World } from "./world";

/** Numbers of a tensor, or a plain fact. */
export type ObservedValue = { readonly dtype: DType; readonly data: ArrayLike<number> } | string;

/** By name: "w0", "w0.grad", "o0.w0.exp_avg", "result t7", "argument x1". */
export type Observation = ReadonlyMap<string, ObservedValue>;

/** A gradient whose numbers can be looked at. */
export const denseOf = (grad: Tensor): Tensor =>
  grad instanceof RowSparse && !grad.isDisposed ? grad.toDense() : grad;

export async function observe(
  world: World,
  results: ReadonlyMap<Id, Tensor>,
  args: ReadonlyMap<Id, Tensor> = new Map(),
): Promise<Observation> {
  const seen = new Map<string, ObservedValue>();
  const look = async (name: string, value: Tensor) => {
    seen.set(name, value.isDisposed ? "disposed" : { dtype: value.dtype, data: await value.data() });
  };
  for (const [id, value] of results) await look(`result ${id}`, value);
  for (const [id, value] of args) if (world.values.get(id) !== value) await look(`argument ${id}`, value);
  for (const [id, value] of world.values) {
    if (value.isDisposed) continue;
    await look(id, value);
    const { grad } = value;
    if (grad === null) continue;
    const dense = denseOf(grad);
    await look(`${id}.grad`, dense);
    if (dense !== grad) dense.dispose();
  }
  for (const [id, { optimizer }] of world.trainers) {
    const { groups, state } = optimizer.stateDict();
    seen.set(`${id} options`, JSON.stringify(groups));
    for (const [name, entry] of Object.entries(state)) {
      for (const [key, part] of Object.entries(entry)) {
        const of = `${id}.${name}.${key}`;
        if (key === "step") seen.set(of, String(part));
        else if (typeof part === "number") seen.set(of, { dtype: "f32", data: [part] });
        else await look(of, part as Tensor);
      }
    }
  }
  for (const [id, average] of world.averages) {
    for (const [name, part] of Object.entries(average.stateDict())) {
      if (typeof part === "number") seen.set(`${id} updates`, String(part));
      else await look(`${id}.${name.replace("module.", "")}.average`, part);
    }
  }
  if (world.scaler !== null) seen.set("the scaler", JSON.stringify(world.scaler.stateDict()));
  seen.set("the generator", JSON.stringify(world.generator.stateDict()));
  return seen;
}
