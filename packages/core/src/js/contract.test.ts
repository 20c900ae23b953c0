import { contractSuite } from "@opt/testkit";
import { openJsBackend } from "../backend";

contractSuite({ name: "js", open: async () => openJsBackend(), dtypes: ["f32", "f64"], fuses: true, epilogues: true });
