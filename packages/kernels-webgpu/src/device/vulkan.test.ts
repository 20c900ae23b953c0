import { expect, it } from "vitest";
import { hasVulkanDriver } from "./vulkan";

const places = (env: Record<string, string>, ...files: string[]) => ({
  env,
  list: (folder: string) =>
    files.filter((file) => file.startsWith(`${folder}/`)).map((file) => file.slice(folder.length + 1)),
});

it.each([
  ["nothing", {}, [], false],
  ["an empty folder", {}, ["/etc/vulkan/icd.d/README"], false],
  ["the system's", {}, ["/usr/share/vulkan/icd.d/radeon_icd.json"], true],
  ["the administrator's", {}, ["/etc/vulkan/icd.d/nvidia_icd.json"], true],
  ["the user's", { HOME: "/home/a" }, ["/home/a/.local/share/vulkan/icd.d/x.json"], true],
  ["a folder of XDG's", { XDG_DATA_DIRS: "/nix/a:/nix/b" }, ["/nix/b/vulkan/icd.d/x.json"], true],
  ["named files", { VK_ICD_FILENAMES: "/swiftshader.json" }, [], true],
])("%s", (_, env, files, expected) => expect(hasVulkanDriver(places(env, ...files))).toBe(expected));
