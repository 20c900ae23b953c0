// The suite's own alarm bells: devices with planted faults must be found out.
import { type Backend, type Launch, openJsBackend, type Slice } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { guardedLaunch, LAYOUTS, type Layout } from "./guarded-launch";
import "../numbers/matcher";

const copySpec = { kind: "copy", from: "f32", to: "f32" } as const;
const regions = { input: { source: Float32Array.of(1, 2, 3) }, output: { target: new Float32Array(3) } };

/** The js device, with something done to memory after each launch. */
function faulty(damage: (backend: Backend, launch: Launch<"copy">) => void): Backend {
  const backend = openJsBackend();
  const launch = backend.launch.bind(backend);
  backend.launch = (each) => {
    launch(each);
    damage(backend, each as Launch<"copy">);
  };
  return backend;
}

function run(backend: Backend, layout: Layout) {
  return guardedLaunch(backend, backend.kernel(copySpec), regions, layout, (slices) => ({
    ...slices,
    shape: [3],
    sourceStrides: [1],
    targetStrides: [1],
  }));
}

const poke = (backend: Backend, { memory, byteOffset }: Slice, element: number) =>
  backend.write(memory, byteOffset + element * 4, Uint8Array.of(1, 2, 3, 4));

describe.each(LAYOUTS)("guardedLaunch, memories %s", (layout) => {
  it("gives what the launch left in the outputs", async () => {
    const { target } = await run(openJsBackend(), layout);
    expect(target).toAgreeWith([1, 2, 3]);
  });

  it("notices one element too many", async () => {
    const backend = faulty((device, { target }) => poke(device, target, 3));
    await expect(run(backend, layout)).rejects.toThrow('0 bytes past the end of "target"');
  });

  it("notices a changed input", async () => {
    const backend = faulty((device, { source }) => poke(device, source, 1));
    await expect(run(backend, layout)).rejects.toThrow('inside of the input "source"');
  });

  it("shows an output element that was never written as NaN", async () => {
    const backend = openJsBackend();
    backend.launch = () => {};
    const { target } = await run(backend, layout);
    expect(target).toAgreeWith([Number.NaN, Number.NaN, Number.NaN]);
  });
});

describe("guardedLaunch in one memory", () => {
  it("notices a write before the output", async () => {
    const backend = faulty((device, { target }) => poke(device, target, -1));
    await expect(run(backend, "together")).rejects.toThrow("was overwritten");
  });

  it("places every slice at an odd element offset", async () => {
    const offsets: number[] = [];
    const backend = faulty((_device, { source, target }) => offsets.push(source.byteOffset, target.byteOffset));
    await run(backend, "together");
    expect(offsets.map((offset) => (offset / 4) % 2)).toEqual([1, 1]);
  });
});
