/** Where random programs run: the devices, js first, the optimizers and the layers. */
import "@opt/kernels-cpu";
import "@opt/kernels-webgpu";
import { type Device, init } from "@opt/core";
import { enableStochasticRounding } from "@opt/kernels-wasm";
import * as nn from "@opt/nn";
import { type LayerClasses, type Setup, useSoftwareVulkan } from "@opt/testkit";
import { optimizerClasses } from "@opt/testkit/optimizers";
import { inCheckpoints } from "./checkpoints";

useSoftwareVulkan();
enableStochasticRounding();

// Random options reach rules that no package has compiled ahead, which the devices say once for each.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (!("code" in warning) || warning.code !== "OPT_RULE_NOT_BUILT") console.warn(warning);
});

/** The devices by name, or why one does not open. */
export async function setUp(...names: string[]): Promise<Setup | string> {
  const devices: Device[] = [];
  try {
    for (const name of names) devices.push(await init(name));
  } catch (error) {
    return String((error as Error).message);
  }
  return {
    devices,
    optimizers: await optimizerClasses(),
    layers: { ...nn } as unknown as LayerClasses,
    // They come back on the device that was opened last, from which the others take only what can be read at once.
    ...(devices.every(({ backend }) => backend.readSync) && { checkpoints: inCheckpoints }),
  };
}
