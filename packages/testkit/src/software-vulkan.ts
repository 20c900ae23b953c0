/** A Vulkan driver for machines without a GPU: the SwiftShader that comes with Chromium. */
import { existsSync } from "node:fs";

const GPUS = ["/dev/dri/renderD128", "/dev/nvidia0"];
const SWIFTSHADER = ["/usr/lib/chromium", "/usr/lib/chromium-browser", "/opt/google/chrome"].map(
  (folder) => `${folder}/vk_swiftshader_icd.json`,
);

/** Points this process' Vulkan loader at SwiftShader, unless a driver is named or there is a GPU. Call it before WebGPU is opened. */
export function useSoftwareVulkan(): void {
  const { env } = process;
  if (env.VK_ICD_FILENAMES !== undefined || env.VK_DRIVER_FILES !== undefined) return;
  const driver = SWIFTSHADER.find((file) => existsSync(file));
  if (driver !== undefined && !GPUS.some((device) => existsSync(device))) env.VK_ICD_FILENAMES = driver;
}
