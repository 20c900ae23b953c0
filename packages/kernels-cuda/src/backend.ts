/** The cuda device: launches are enqueued on one stream, and only reads wait. */
import { join } from "node:path";
import type { Backend, Kernel, Kind, Launch, Memory, PreparedLaunches, Spec } from "@opt/core/backend";
import { binaryFolder, loadAddon, openDriver, openFirst } from "./addon";
import { COMPILER_FUNCTIONS, type Compiler, nvrtc } from "./compiler";
import type { Driver } from "./driver";
import { withFixedMemory } from "./fixed-memory";
import { Gpu } from "./gpu";
import { Kernels } from "./kernels";
import { LaunchGraph } from "./launch-graph";
import { Launcher } from "./launcher";
import { type CudaKernel, FUSES, startLaunch } from "./launches";
import { CudaMemory, rangeAddress } from "./memory";
import { ruleForm } from "./rule-arguments";
import type { Download } from "./staging";

export interface CudaParts {
  readonly driver: Driver;
  /** Folder of the fatbins. */
  readonly kernels: string;
  readonly findCompiler?: () => Compiler | undefined;
}

/** A GPU as a backend of `@opt/core`. */
export class CudaBackend implements Backend {
  readonly name = "cuda";
  readonly dtypes = ["f32", "f64"] as const;
  readonly exact = true;
  readonly fuses = FUSES;
  readonly portable = true;
  readonly packs = true;
  readonly draws = true;
  /** @internal What is known of the GPU. */
  readonly gpu: Gpu;
  readonly #on: Launcher;
  /** Waits come one after the other, so that they take one thread of the event loop's pool and no more. */
  #waiting: Promise<unknown> = Promise.resolve();

  /** @internal Use `openCudaBackend`. */
  constructor(index: number, { driver, kernels, findCompiler = () => undefined }: CudaParts) {
    this.gpu = new Gpu(driver, index);
    this.#on = new Launcher(this.gpu, this.#openKernels(kernels, findCompiler));
  }

  /** @throws OptError DEVICE_UNAVAILABLE; then nothing is held */
  #openKernels(folder: string, findCompiler: () => Compiler | undefined): Kernels {
    try {
      return new Kernels(this.gpu, folder, findCompiler);
    } catch (error) {
      this.gpu.close();
      throw error;
    }
  }

  get lost(): boolean {
    return this.gpu.isLost;
  }

  /** Bytes taken from the driver: on the GPU, and pinned on the host. */
  reserved(): { device: number; host: number } {
    const { allocator, tables, staging } = this.#on;
    return { device: allocator.reservedBytes + tables.reservedBytes, host: staging.reservedBytes };
  }

  allocate(bytes: number): Memory {
    return this.#on.allocator.allocate(bytes);
  }

  reserve(bytes: number): Memory {
    return new CudaMemory(bytes, 0, 0, this.#on.allocator);
  }

  free(memory: Memory): void {
    this.#on.allocator.free(memory as CudaMemory);
  }

  write(memory: Memory, byteOffset: number, bytes: Uint8Array): void {
    const address = rangeAddress(memory, this.#on.allocator, byteOffset, bytes.length);
    this.gpu.use();
    this.#on.staging.upload(address, bytes, this.gpu.stream);
  }

  readSync(memory: Memory, byteOffset: number, bytes: number): Uint8Array {
    const download = this.#download(memory, byteOffset, bytes);
    this.#settle(download, this.gpu.driver.cuEventSynchronize(download.event));
    return download.finish();
  }

  async read(memory: Memory, byteOffset: number, bytes: number): Promise<Uint8Array> {
    const download = this.#download(memory, byteOffset, bytes);
    await this.#wait(download);
    return download.finish();
  }

  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    const { kernels } = this.#on;
    const some = spec as unknown as Spec;
    this.gpu.use();
    if (some.kind === "rule") return { spec, entry: kernels.rule(...ruleForm(some)) } as CudaKernel<K>;
    if (some.kind === "map") return { spec, entry: kernels.map(some) } as CudaKernel<K>;
    return { spec };
  }

  launch(launch: Launch): void {
    this.gpu.use();
    startLaunch(this.#on, launch);
  }

  prepare(launches: readonly Launch[], open: readonly Memory[]): PreparedLaunches {
    return withFixedMemory(this, launches, open, (list) => new LaunchGraph(this.#on, list));
  }

  async sync(): Promise<void> {
    this.gpu.use();
    const mark = this.#on.staging.mark(this.gpu.stream);
    await this.#wait(mark);
    mark.abandon();
  }

  close(): void {
    this.#on.close();
    this.gpu.close();
  }

  #download(memory: Memory, byteOffset: number, bytes: number): Download {
    const address = rangeAddress(memory, this.#on.allocator, byteOffset, bytes);
    this.gpu.use();
    return this.#on.staging.download(address, bytes, this.gpu.stream);
  }

  async #wait(download: Download): Promise<void> {
    const status = this.#waiting.then(() => this.gpu.driver.waitForEvent(this.gpu.context, download.event));
    this.#waiting = status.catch(() => {});
    this.#settle(download, await status);
  }

  #settle(download: Download, status: number): void {
    if (status !== 0) download.abandon();
    this.gpu.check(status, "work on the GPU");
  }
}

/**
 * Opens GPU number `index`.
 *
 * @throws OptError DEVICE_UNAVAILABLE if there is no binary for this platform, no driver, no such GPU, or no kernels
 */
export function openCudaBackend(index = 0): CudaBackend {
  const folder = binaryFolder();
  const addon = loadAddon(folder);
  return new CudaBackend(index, {
    driver: openDriver(addon),
    kernels: join(folder, "kernels"),
    findCompiler: () => {
      const table = openFirst((path) => addon.open("compiler", path), "libnvrtc", COMPILER_FUNCTIONS);
      return table && nvrtc(table, addon.textAddress);
    },
  });
}
