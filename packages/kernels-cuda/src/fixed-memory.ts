/** Prepared launches with fixed addresses: open memory is copied in before the launches, and out after them. */
import {
  type Backend,
  type Launch,
  type Memory,
  memoriesOf,
  movedLaunch,
  type PreparedLaunches,
  type Scalar,
  type Slice,
  writesOf,
} from "@opt/core/backend";

/** @param prepare prepares launches that have no open memory */
export function withFixedMemory(
  backend: Backend,
  launches: readonly Launch[],
  open: readonly Memory[],
  prepare: (launches: readonly Launch[]) => PreparedLaunches,
): PreparedLaunches {
  const used = new Set(launches.flatMap((launch) => [...memoriesOf(launch)]));
  const written = new Set(launches.flatMap((launch) => [...writesOf(launch)]));
  const copies = open.flatMap((memory, index) => {
    if (!used.has(memory)) return [];
    return [{ index, own: backend.allocate(memory.bytes), memory, isWritten: written.has(memory) }];
  });
  const own = new Map(copies.map((copy) => [copy.memory, { memory: copy.own, byteOffset: 0 }]));
  const moved = (scalar: Scalar): Scalar => {
    const place = typeof scalar === "number" ? undefined : own.get(scalar.memory);
    return place === undefined ? scalar : { ...(scalar as Slice), memory: place.memory };
  };
  const list = prepare(launches.map((launch) => movedLaunch(launch, own)));
  const copy = backend.kernel({ kind: "copy", from: "u8", to: "u8" });
  const move = (from: Slice, to: Slice) =>
    from.length > 0 &&
    backend.launch({
      kind: "copy",
      kernel: copy,
      source: from,
      target: to,
      shape: [from.length],
      sourceStrides: [1],
      targetStrides: [1],
    });
  return {
    run(scalars, places) {
      const slices = copies.map(({ index, own, memory, isWritten }) => {
        const { memory: now, byteOffset } = places[index]!;
        return { inner: { memory: own, byteOffset: 0, length: memory.bytes }, now, byteOffset, isWritten };
      });
      const outer = ({ now, byteOffset, inner }: (typeof slices)[number]) => {
        // The run's memory may begin elsewhere: what both have is copied.
        const start = Math.max(0, -byteOffset);
        const length = Math.min(inner.length - start, now.bytes - start - byteOffset);
        return [
          { memory: now, byteOffset: start + byteOffset, length },
          { ...inner, byteOffset: start, length },
        ] as const;
      };
      for (const each of slices) move(...outer(each));
      list.run(new Map([...scalars].map(([index, given]) => [index, given.map(moved)])), []);
      for (const each of slices) {
        const [there, here] = outer(each);
        if (each.isWritten) move(here, there);
      }
    },
    dispose() {
      list.dispose();
      for (const { own } of copies) backend.free(own);
    },
  };
}
