import { contractSuite } from "@opt/testkit";
import { FUSED_KINDS, openJsBackend } from "../backend";

contractSuite({
  name: "js",
  open: async () => openJsBackend(),
  dtypes: ["f32", "f64"],
  fuses: FUSED_KINDS,
  epilogues: true,
});
