/** Which device trains, and why. */
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { type Device, init, OptError } from "@opt/core";

export interface Choice {
  readonly device: Device;
  /** For the page's reader. */
  readonly sentence: string;
}

/** WebGPU where it opens, else WebAssembly; `wanted` overrides. */
export async function chooseDevice(wanted: string | null): Promise<Choice> {
  if (wanted !== null) return { device: await init(wanted), sentence: `Trains on ${wanted}, as the address asks.` };
  try {
    const device = await init("webgpu");
    return { device, sentence: `Trains on WebGPU: ${await adapterName()}.` };
  } catch (error) {
    if (!(error instanceof OptError)) throw error;
    const device = await init("wasm");
    return { device, sentence: `Trains on WebAssembly, because WebGPU does not open here: ${error.message}` };
  }
}

async function adapterName(): Promise<string> {
  const { vendor, architecture, description } = (await navigator.gpu.requestAdapter())?.info ?? {};
  return [vendor, architecture, description].filter((part) => part).join(" ") || "this machine's adapter";
}
