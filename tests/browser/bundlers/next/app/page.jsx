"use client";

import { useEffect } from "react";

export default function Page() {
  useEffect(() => {
    import("./main.js");
  }, []);
  return <p>webrnn</p>;
}
