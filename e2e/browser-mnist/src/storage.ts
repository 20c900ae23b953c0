/** The browser's own files (OPFS), where a checkpoint outlives the page. */

const NAME = "digits.safetensors";

export async function keepInBrowser(file: Blob): Promise<void> {
  const folder = await navigator.storage.getDirectory();
  const writable = await (await folder.getFileHandle(NAME, { create: true })).createWritable();
  await writable.write(file);
  await writable.close();
}

/** What was kept, or undefined. */
export async function restoreFromBrowser(): Promise<ArrayBuffer | undefined> {
  const folder = await navigator.storage.getDirectory();
  try {
    return await (await (await folder.getFileHandle(NAME)).getFile()).arrayBuffer();
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotFoundError") return undefined;
    throw error;
  }
}
