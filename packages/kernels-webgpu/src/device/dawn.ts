/** Dawn, which is WebGPU in Node. Pages never load it. */
import { unavailable } from "./unavailable";
import { hasVulkanDriver } from "./vulkan";

/** Dawn lives as long as the process: its devices must not outlive it. */
let dawn: Promise<GPU> | undefined;

export function loadDawn(): Promise<GPU> {
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
    throw unavailable(missing ? "`npm i webgpu` is missing." : `Dawn does not start: ${cause}.`, cause);
  }
}
