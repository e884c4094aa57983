package calyx_test

import (
	"calyx"
	"fmt"
)

func Example() {
	filter, err := calyx.New(1000, 0.01)
	if err != nil {
		panic(err)
	}
	filter.AddNumber(1)
	filter.AddNumber(2)
	filter.AddNumber(3)
	filter.AddNumber(4)
	filter.AddNumber(5)
	filter.AddNumber(7)
	filter.AddString("hu")
	filter.AddString("Jemmy")

	fmt.Println(filter.Number())

	fmt.Println(filter.ExistsNumber(3))
	fmt.Println(filter.ExistsNumber(5))
	fmt.Println(filter.ExistsNumber(6))
	fmt.Println(filter.ExistsString("Jemmy"))
	fmt.Println(filter.ExistsString("jemmy"))
	// Output:
	// 8
	// true
	// true
	// false
	// true
	// false
}
