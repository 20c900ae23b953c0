/** Finds an adapter and opens a device: the page's, Deno's, or Dawn's in Node. */
import { OptError } from "@opt/core";
import { type BackendLimits, WebGpuBackend } from "../backend";
import { hasVulkanDriver } from "./vulkan";

export interface WebGpuOptions extends BackendLimits {
  /** A device of the caller's. The backend closes it when it is closed itself. */
  readonly device?: GPUDevice;
  /** "low-power" or "high-performance", where there are several adapters. */
  readonly powerPreference?: GPUPowerPreference;
}

const ADVICE = "`wasm` of @opt/kernels-wasm serves instead.";

function unavailable(problem: string, cause?: unknown): OptError {
  return new OptError("DEVICE_UNAVAILABLE", "webgpu", problem, ADVICE, { cause });
}

/** Opens WebGPU as a backend: of the first adapter, or of a `GPUDevice` of yours. @throws OptError DEVICE_UNAVAILABLE saying what is missing */
export async function openWebGpuBackend(options: WebGpuOptions = {}): Promise<WebGpuBackend> {
  if (options.device !== undefined) {
    return new WebGpuBackend(options.device, options, languageFeatures((globalThis.navigator as Navigator)?.gpu));
  }
  const gpu = globalThis.navigator?.gpu ?? (await loadDawn());
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

/** Dawn lives as long as the process: its devices must not outlive it. */
let dawn: Promise<GPU> | undefined;

function loadDawn(): Promise<GPU> {
  const { process } = globalThis as { process?: Partial<NodeJS.Process> };
  if (process?.versions?.node === undefined)
    return Promise.reject(unavailable("this browser has no WebGPU (navigator.gpu)."));
  // Node's own module, found where no bundler sees it.
  const files = process.platform === "linux" ? process.getBuiltinModule?.("node:fs") : undefined;
  if (files && !hasVulkanDriver({ env: process.env ?? {}, list: (folder) => namesIn(files, folder) }))
    return Promise.reject(unavailable("no adapter answers: no Vulkan driver of a GPU is here."));
  dawn ??= importDawn();
  return dawn;
}

function namesIn(files: typeof import("node:fs"), folder: string): string[] {
  try {
    return files.readdirSync(folder);
  } catch {
    return []; // not there, or not for us
  }
}

async function importDawn(): Promise<GPU> {
  const name = "webgpu"; // a variable, so that bundlers for browsers leave it alone
  try {
    const { create } = (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as {
      create(options: string[]): GPU;
    };
    return create([]);
  } catch (cause) {
    dawn = undefined;
    const missing = (cause as { code?: string }).code === "ERR_MODULE_NOT_FOUND";
    throw unavailable(missing ? "the package `webgpu` is not installed." : `Dawn does not start: ${cause}.`, cause);
  }
}
