/** Importing this package makes the device "wasm" known to `init`. */
import { registerBackend } from "@opt/core";
import { openWasmBackend } from "./backend";

registerBackend({ name: "wasm", rank: 10, load: () => openWasmBackend() });
