/** Which devices the worker can train on, and why not on the others. */
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { listDevices } from "@opt/core";
import type { DeviceChoice } from "./requests";

/** Every device, fastest first. */
export async function deviceChoices(): Promise<DeviceChoice[]> {
  const listing = await listDevices();
  return Promise.all(
    listing.map(async ({ name, available, reason }) => ({
      name,
      reason: available ? undefined : (reason ?? "it does not open here."),
      detail: available ? await detailOf(name) : "",
    })),
  );
}

async function detailOf(name: string): Promise<string> {
  if (name === "webgpu") return adapterName();
  if (name !== "wasm") return "";
  return crossOriginIsolated
    ? `up to ${navigator.hardwareConcurrency} threads`
    : "one thread, because this server does not isolate its pages";
}

async function adapterName(): Promise<string> {
  const { vendor, architecture, description } = (await navigator.gpu.requestAdapter())?.info ?? {};
  return [vendor, architecture, description].filter((part) => part).join(" ");
}
