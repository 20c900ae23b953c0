/** Devices for tests: the js backend with its launches counted, its memory limited, and maps whose names every device can write. */
import type { Backend } from "../src/backend/backend";
import type { Memory } from "../src/backend/memory";
import { FUSED_KINDS, type FusedKind, type Kind, type Launch, type Specs } from "../src/backend/spec";
import { Device } from "../src/device/device";
import { OptError } from "../src/errors/errors";
import { openJsBackend } from "../src/js/backend";
import { checkNames } from "../src/rule/rule";

export interface FakeOptions {
  readonly name?: string;
  /** Without readSync, as on WebGPU. */
  readonly async?: boolean;
  /** The fused ops it has kernels for: by default all. */
  readonly fuses?: readonly FusedKind[];
  /** It can reserve memory: the default. */
  readonly reserves?: boolean;
}

export class FakeDevice extends Device {
  readonly launches: Kind[] = [];
  /** Allocations that still succeed. */
  allocationsLeft = Number.POSITIVE_INFINITY;

  constructor({ name = "fake", async = false, fuses, reserves = true }: FakeOptions = {}) {
    const js = openJsBackend();
    const backend: Backend = {
      name,
      dtypes: js.dtypes,
      exact: true,
      packs: true,
      draws: true,
      fuses: fuses ?? js.fuses,
      allocate: (bytes): Memory => {
        if (this.allocationsLeft-- <= 0) throw new OptError("OUT_OF_MEMORY", name, `cannot allocate ${bytes} bytes.`);
        return js.allocate(bytes);
      },
      ...(reserves ? { reserve: (bytes: number) => js.reserve!(bytes) } : {}),
      free: (memory) => js.free(memory),
      write: (memory, offset, bytes) => js.write(memory, offset, bytes),
      read: (memory, offset, bytes) => js.read(memory, offset, bytes),
      ...(async
        ? {}
        : { readSync: (memory: Memory, offset: number, bytes: number) => js.readSync!(memory, offset, bytes) }),
      kernel: (spec) => {
        if (spec.kind === "map") {
          const { buffers, scalars } = (spec as unknown as Specs["map"]).program;
          checkNames("a map", [...buffers, ...scalars]);
        }
        const isFused = (FUSED_KINDS as readonly Kind[]).includes(spec.kind);
        if (isFused && fuses?.includes(spec.kind as FusedKind) === false)
          throw new OptError("UNSUPPORTED", name, `has no kernel for ${spec.kind}.`);
        return js.kernel(spec);
      },
      launch: (launch: Launch) => {
        this.launches.push(launch.kind);
        js.launch(launch);
      },
      sync: () => js.sync(),
      close: () => js.close(),
    };
    super(name, backend);
  }
}
