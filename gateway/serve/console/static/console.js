// Pages work without this file. Each function adds to what is there, and is named by what it serves.
"use strict";

// A form with this attribute is sent when one of its choices changes.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-send-on-change]");
  if (form) form.requestSubmit();
});
