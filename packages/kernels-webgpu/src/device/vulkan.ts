/** Whether Linux has a Vulkan driver: where it has none, Dawn's loader says so on the terminal, whoever asked and why. */

interface Places {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The names in a folder; none where it is not there. */
  readonly list: (folder: string) => readonly string[];
}

/** The loader's search (Khronos, "Vulkan Loader and Driver Interface"): named files, else the manifests in these folders. */
export function hasVulkanDriver({ env, list }: Places): boolean {
  if (env.VK_DRIVER_FILES || env.VK_ICD_FILENAMES || env.VK_ADD_DRIVER_FILES) return true;
  const home = env.HOME ?? "";
  const folders = [
    env.XDG_CONFIG_HOME ?? `${home}/.config`,
    ...(env.XDG_CONFIG_DIRS ?? "/etc/xdg").split(":"),
    ...["/etc", "/usr/local/etc", "/run/opengl-driver/share"],
    env.XDG_DATA_HOME ?? `${home}/.local/share`,
    ...(env.XDG_DATA_DIRS ?? "").split(":").filter((folder) => folder !== ""),
    ...["/usr/local/share", "/usr/share"],
  ];
  return folders.some((folder) => list(`${folder}/vulkan/icd.d`).some((name) => name.endsWith(".json")));
}
