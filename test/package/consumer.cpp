#include <calyx/calyx.h>

#include <iostream>
#include <memory>
#include <string>

int main() {
    calyx_options want{};
    want.capacity = 1000;
    calyx_filter *made = nullptr;
    if (calyx_new(&want, &made, nullptr) != CALYX_OK) return 1;
    const std::unique_ptr<calyx_filter, decltype(&calyx_free)> flowers(
        made, calyx_free);

    const std::string rose = "rose";
    if (calyx_add(made, rose.data(), rose.size(), nullptr) != CALYX_OK)
        return 1;
    std::cout << "calyx " << calyx_version() << ' '
              << (calyx_has(made, rose.data(), rose.size()) ? "remembers"
                                                            : "forgets")
              << '\n';
}
