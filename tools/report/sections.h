#pragma once

#include "tools/report/markup.h"
#include "tools/report/report.h"

namespace gle::report {

// The parts of the page, each a <section>. A part without data is a heading and the line that says what it needs.
Markup results_section(const Report& report);
Markup curves_section(const Report& report);
Markup ablation_section(const Report& report);
Markup retrieval_section(const Report& report);
Markup map_section(const Report& report);
Markup refinement_section(const Report& report);
Markup sweep_section(const Report& report);
Markup about_section(const Report& report);

// "data:image/jpeg;base64,..."
std::string data_address(const Picture& picture);

}  // namespace gle::report
