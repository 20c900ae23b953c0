/** Numbers of parameters that one rank has computed, for all ranks. */
import { full, tensor } from "../create";
import { cast, concat } from "../ops";
import { indexSelect } from "../ops/composed/defined";
import type { MeshAxis } from "../tensor/placement";
import type { Tensor } from "../tensor/tensor";

/** Lists of numbers by name, each with one for each parameter. */
export type Numbers = Readonly<Record<string, Tensor>>;

/**
 * Numbers of all parameters, where this rank has those of some.
 *
 * @param places where they are in its lists, by parameter; undefined for others, which get 0
 * @param given undefined on a rank that has none
 */
export function spread(
  names: readonly string[],
  places: readonly (number | undefined)[],
  given: Readonly<Record<string, readonly number[] | Tensor>> | undefined,
  { dtype, device }: Pick<Tensor, "dtype" | "device">,
): Numbers {
  const none = full([1], 0, { dtype, device });
  const isWhole = places.every((place, i) => place === i);
  const listOf = (name: string) => {
    const own = given?.[name];
    if (own === undefined) return concat(places.map(() => none));
    const list = Array.isArray(own) ? tensor(own, { dtype, device: device.name }) : cast(own as Tensor, dtype);
    if (isWhole) return list;
    return concat(places.map((place) => (place === undefined ? none : list.slice(place, place + 1))));
  };
  return Object.fromEntries(names.map((name) => [name, listOf(name)]));
}

/**
 * The same numbers on all ranks of an axis: those of each parameter's owner. They are chosen, not added, so that they keep their words.
 *
 * @param owners by parameter; null for what every rank has
 */
export function fromOwners(axis: MeshAxis<Tensor>, numbers: Numbers, owners: readonly (number | null)[]): Numbers {
  const names = Object.keys(numbers);
  if (names.length === 0 || axis.size === 1) return numbers;
  const own = concat(Object.values(numbers)).reshape([1, names.length * owners.length]);
  const [all] = axis.gather([{ tensor: own, dim: 0, length: axis.size }]) as [Tensor];
  const { device } = all;
  const chosen = names.flatMap((_, n) =>
    owners.map((owner, i) => ((owner ?? axis.index) * names.length + n) * owners.length + i),
  );
  const list = indexSelect(all.reshape([all.size]), 0, tensor(chosen, { dtype: "i32", device: device.name }));
  return Object.fromEntries(
    names.map((name, n) => [name, list.slice(n * owners.length, (n + 1) * owners.length)] as const),
  );
}
