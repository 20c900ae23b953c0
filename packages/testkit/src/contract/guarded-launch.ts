/** Launches a kernel on memory whose every byte is accounted for: nothing but the outputs may change. */
import type { Backend, Kernel, Kind, Launch, LaunchArguments, Memory, Slice, TypedArray } from "@opt/core/backend";

/** Arrays by name. Outputs give their length and type; their contents are poisoned. */
export interface Regions {
  readonly input?: Readonly<Record<string, TypedArray>>;
  readonly update?: Readonly<Record<string, TypedArray>>;
  readonly output?: Readonly<Record<string, TypedArray>>;
  /** Elements of those of packed formats, whose arrays are bytes. */
  readonly lengths?: Readonly<Record<string, number>>;
}

type Names<Group> = keyof NonNullable<Group> & string;

/** A slice for every region, by its name. */
export type Slices<R extends Regions> = {
  readonly [Name in Names<R["input"]> | Names<R["update"]> | Names<R["output"]>]: Slice;
};

/** What the launch left in every region that it may write, by its name. */
export type Results<R extends Regions> = {
  readonly [Name in Names<R["update"]> | Names<R["output"]>]: TypedArray;
};

/**
 * together: all in one memory, every slice at an odd element offset; apart: a memory each, from its first byte.
 * A number: a memory each of exactly its bytes, that of the region with this number allocated first.
 */
export type Layout = "together" | "apart" | number;

export const LAYOUTS: readonly Layout[] = ["together", "apart"];

const GUARD = 64;

/** All bits set: NaN as a float, -1 as an integer, in every width. */
const POISON = 0xff;

interface Place {
  readonly name: string;
  readonly array: TypedArray;
  readonly writable: boolean;
  readonly memory: number;
  readonly byteOffset: number;
}

/** Runs one launch and returns what the outputs and updates then hold. Throws if any other byte changed. */
export async function guardedLaunch<K extends Kind, R extends Regions>(
  backend: Backend,
  kernel: Kernel<K>,
  regions: R,
  layout: Layout,
  launchArguments: (slices: Slices<R>) => LaunchArguments[K],
): Promise<Results<R>> {
  const { places, sizes } = place(regions, layout);
  const images = sizes.map((bytes) => new Uint8Array(bytes).fill(POISON));
  for (const { name, array, memory, byteOffset } of places) {
    if (regions.output?.[name] === undefined) images[memory]!.set(bytesOf(array), byteOffset);
  }
  const memories: Memory[] = [];
  const first = typeof layout === "number" ? layout : 0;
  try {
    for (let i = 0; i < images.length; i++) {
      const at = (first + i) % images.length;
      const memory = backend.allocate(images[at]!.length);
      memories[at] = memory;
      backend.write(memory, 0, images[at]!);
    }
    const slices = Object.fromEntries(
      places.map(({ name, array, memory, byteOffset }) => [
        name,
        { memory: memories[memory]!, byteOffset, length: regions.lengths?.[name] ?? array.length },
      ]),
    ) as Slices<R>;
    backend.launch({ kind: kernel.spec.kind, kernel, ...launchArguments(slices) } as unknown as Launch);
    const after = await Promise.all(memories.map((memory) => backend.read(memory, 0, memory.bytes)));
    checkGuards(places, images, after);
    const written = places.filter(({ writable }) => writable);
    return Object.fromEntries(written.map((each) => [each.name, extract(each, after[each.memory]!)])) as Results<R>;
  } finally {
    for (const memory of Object.values(memories)) backend.free(memory);
  }
}

function place(regions: Regions, layout: Layout): { places: Place[]; sizes: number[] } {
  const places: Place[] = [];
  const sizes: number[] = [];
  let end = 0;
  const add = (group: Readonly<Record<string, TypedArray>> | undefined, writable: boolean) => {
    for (const [name, array] of Object.entries(group ?? {})) {
      if (layout !== "together") {
        places.push({ name, array, writable, memory: sizes.length, byteOffset: 0 });
        sizes.push(array.byteLength + (layout === "apart" ? GUARD : 0));
        continue;
      }
      const aligned = Math.ceil((end + GUARD) / GUARD) * GUARD;
      // Scales in float32 follow packed elements.
      const unit = regions.lengths?.[name] === undefined ? array.BYTES_PER_ELEMENT : 4;
      const byteOffset = aligned + (1 + 2 * (places.length % 8)) * unit;
      places.push({ name, array, writable, memory: 0, byteOffset });
      end = byteOffset + array.byteLength;
    }
  };
  add(regions.input, false);
  add(regions.update, true);
  add(regions.output, true);
  if (layout === "together") sizes.push(Math.ceil((end + GUARD) / GUARD) * GUARD);
  return { places, sizes };
}

/** Everything outside of the writable regions must be as it was. */
function checkGuards(places: readonly Place[], before: readonly Uint8Array[], after: readonly Uint8Array[]): void {
  before.forEach((image, memory) => {
    const changed = after[memory]!;
    if (changed.length !== image.length) throw new Error(`read ${changed.length} bytes of ${image.length}`);
    const free = image.slice();
    for (const each of places) {
      if (!each.writable || each.memory !== memory) continue;
      const end = each.byteOffset + each.array.byteLength;
      free.set(changed.subarray(each.byteOffset, end), each.byteOffset);
    }
    if (Buffer.compare(free, changed) === 0) return;
    for (let i = 0; i < free.length; i++) {
      if (free[i] !== changed[i]) throw new Error(`byte ${i} was overwritten: ${locate(places, memory, i)}`);
    }
  });
}

function locate(places: readonly Place[], memory: number, byte: number): string {
  let nearest = "before every region";
  for (const { name, array, memory: home, byteOffset, writable } of places) {
    if (home !== memory || byte < byteOffset) continue;
    const past = byte - byteOffset - array.byteLength;
    nearest = past < 0 && !writable ? `inside of the input "${name}"` : `${past} bytes past the end of "${name}"`;
  }
  return nearest;
}

function bytesOf(array: TypedArray): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function extract({ array, byteOffset }: Place, image: Uint8Array): TypedArray {
  const bytes = image.slice(byteOffset, byteOffset + array.byteLength);
  const Elements = array.constructor as new (buffer: ArrayBuffer) => TypedArray;
  return new Elements(bytes.buffer);
}
