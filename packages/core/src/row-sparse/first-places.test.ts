import { expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { tensor } from "../create";
import { firstPlaces } from "./first-places";

// From 2,049 on, the comparisons of a device with memory of its own do not fit into it at once.
it.each([1, 7, 2200])("of %d indices are the same whether or not the host shares the memory", async (count) => {
  const indices = Array.from({ length: count }, (_, i) => ((i * 7919) % 1500) - 1);
  const seen = new Map<number, number>();
  const places = indices.map((index, i) => {
    if (index >= 0 && !seen.has(index)) seen.set(index, i);
    return index < 0 ? -1 : seen.get(index)!;
  });
  const rows = indices.map((index, i) => (places[i] === i ? index : -1));
  for (const device of [undefined, new FakeDevice({ async: true })]) {
    const found = firstPlaces(tensor(indices, { dtype: "i32", device }));
    expect([[...(await found.places.data())], [...(await found.rows.data())]]).toEqual([places, rows]);
  }
});
