/** Finds an adapter and opens a device: the page's, Deno's, or Dawn's in Node. */
import { type BackendLimits, WebGpuBackend } from "../backend";
import { KERNELS } from "../kernels";
import { unavailable } from "./unavailable";

/** A `GPUDevice`: programs without WebGPU's types compile too. */
export interface OpenDevice {
  readonly limits: object;
  readonly queue: object;
  readonly lost: Promise<unknown>;
}

export interface WebGpuOptions extends BackendLimits {
  /** A device of the caller's. The backend closes it when it is closed itself. */
  readonly device?: OpenDevice;
  /** "low-power" or "high-performance", where there are several adapters. */
  readonly powerPreference?: "low-power" | "high-performance";
}

/** Opens WebGPU as a backend: of the first adapter, or of a `GPUDevice` of yours. @throws OptError DEVICE_UNAVAILABLE saying what is missing */
export async function openWebGpuBackend(options: WebGpuOptions = {}): Promise<WebGpuBackend> {
  await KERNELS.load();
  if (options.device !== undefined) {
    const features = languageFeatures((globalThis.navigator as Navigator)?.gpu);
    return new WebGpuBackend(options.device as GPUDevice, options, features);
  }
  const gpu = globalThis.navigator?.gpu ?? (await (await import("./dawn")).loadDawn());
  const { powerPreference = "high-performance" } = options;
  const adapter = await gpu.requestAdapter({ powerPreference });
  if (adapter === null) throw unavailable("no adapter answers: no GPU or no driver of it is here.");
  let device: GPUDevice;
  try {
    device = await adapter.requestDevice({
      requiredFeatures: adapter.features.has("subgroups") ? ["subgroups"] : [],
      requiredLimits: wantedLimits(adapter.limits),
    });
  } catch (cause) {
    throw unavailable(`the adapter opens no device: ${cause}.`, cause);
  }
  return new WebGpuBackend(device, options, languageFeatures(gpu));
}

/** What the adapter has of the limits that we can use. */
function wantedLimits({
  maxBufferSize,
  maxStorageBufferBindingSize,
  maxStorageBuffersPerShaderStage,
}: GPUSupportedLimits): Record<string, number> {
  return { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage };
}

function languageFeatures(gpu: GPU | undefined): ReadonlySet<string> {
  return gpu?.wgslLanguageFeatures ?? new Set();
}
